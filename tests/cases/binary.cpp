// A case for every functor of BinaryFunctors.
#include <cmath>

#include "ops/elementwise.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

// Whole numbers or halves come out.
template <class F>
bool exact_on_small_integers(const F& f) {
  for (double a = -4; a <= 4; ++a) {
    for (double b = -4; b <= 4; ++b) {
      for (const double v : {f.forward(a, b), f.backward_a(3.0, a, b), f.backward_b(3.0, a, b)}) {
        if (2 * v != std::floor(2 * v) || !std::isfinite(v)) return false;
      }
    }
  }
  return true;
}

template <class F>
OpCase binary_case() {
  const F f{};
  const bool needs_positive = std::isnan(f.forward(-1.5, 0.7));
  OpCase c{.name = F::kName, .tolerance = 8, .exact = exact_on_small_integers(f)};
  const auto add = [&](const Shape& a, const Shape& b) {
    const auto input = [&](const Shape& s) {
      return CaseInput{.spec = s, .low = needs_positive ? 0.2 : -2.0, .high = 2.0, .kinks = {0.0}};
    };
    c.variants.push_back({.name = to_string(a) + " " + to_string(b),
                          .inputs = {input(a), input(b)},
                          .run = [f](std::span<const Tensor> in) { return binary(f, in[0], in[1]); }});
  };
  for (const int64_t n : {0, 1, 31, 33, 1025}) add({n}, {n});
  add({2, 10, 5, 7}, {2, 10, 5, 7});
  add({2, 10, 5, 7}, {1, 10, 1, 1});
  add({2, 1, 5, 1}, {1, 17, 1, 7});
  add({4, 9, 8, 16}, {1, 9, 1, 1});  // by pieces of 16 bytes in nchw, each channel's element with whole ones
  add({3, 1, 40}, {1, 9, 40});       // neither stays where it is
  add({1, 24}, {7, 24});
  add({2, 4, 4}, {});
  add({2, 3, 4}, {});
  add({}, {33});
  add({3, 31}, {31});
  add({31, 1}, {31, 33});
  add({4}, {2, 3, 4});
  add({2, 0, 3}, {1, 3});
  return c;
}

const bool registered = [] {
  BinaryFunctors::for_each([]<class F>() { const RegisterCase one(binary_case<F>()); });
  return true;
}();

}  // namespace
}  // namespace plumb::test
