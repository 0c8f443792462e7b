// A case for every functor of UnaryFunctors.
#include <cmath>

#include "ops/elementwise.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

// Attributes other than the defaults, which are often neutral.
template <class F>
F with_attributes() {
  if constexpr (requires { F{1.7, -0.3}; }) {
    return F{1.7, -0.3};
  } else if constexpr (requires { F{1.7}; }) {
    return F{1.7};
  } else {
    return F{};
  }
}

template <class F>
bool exact_on_small_integers(const F& f) {
  for (double x = -4; x <= 4; ++x) {
    const double y = f.forward(x), dx = f.backward(3.0, F::kKeeps == Keeps::kOutput ? y : x);
    if (y != std::floor(y) || dx != std::floor(dx)) return false;
  }
  return true;
}

template <class F>
OpCase unary_case() {
  const F f = with_attributes<F>();
  const bool needs_positive = std::isnan(f.forward(-1.5));
  OpCase c{.name = F::kName, .tolerance = 8, .exact = exact_on_small_integers(f)};
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{1}, Shape{31}, Shape{33}, Shape{1025}, Shape{3, 0, 2}, Shape{2, 10, 5, 7}}) {
    const CaseInput x{.spec = shape, .low = needs_positive ? 0.1 : -3.0, .high = 3.0, .kinks = {0.0}};
    c.variants.push_back(
        {.name = to_string(shape), .inputs = {x}, .run = [f](std::span<const Tensor> in) { return unary(f, in[0]); }});
  }
  return c;
}

const bool registered = [] {
  UnaryFunctors::for_each([]<class F>() { const RegisterCase one(unary_case<F>()); });
  return true;
}();

}  // namespace
}  // namespace plumb::test
