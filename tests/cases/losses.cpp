// Cases for cross_entropy and mse.
#include "ops/cross_entropy.h"
#include "ops/mse.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

OpCase cross_entropy_case() {
  OpCase c{.name = "cross_entropy", .tolerance = 16};
  const auto add = [&](const Shape& x, LossReduction reduction, const char* name) {
    c.variants.push_back(
        {.name = to_string(x) + name,
         .inputs = {{.spec = x, .low = -4, .high = 4},
                    {.spec = TensorSpec(Shape{x[0]}, DType::kI64), .low = 0, .high = static_cast<double>(x[1] - 1)}},
         .run = [=](std::span<const Tensor> in) { return cross_entropy(in[0], in[1], reduction); },
         .terms = static_cast<double>(x[1] + x[0])});
  };
  for (const int64_t n : {0, 1, 31, 33, 1025}) {
    for (const int64_t classes : {1, 3, 10, 17}) {
      if (n > 0) add({n, classes}, LossReduction::kMean, " mean");
      add({n, classes}, LossReduction::kSum, " sum");
      add({n, classes}, LossReduction::kNone, " none");
    }
  }
  add({5, 1000}, LossReduction::kMean, " mean");
  for (const int64_t classes : {64, 301, 515, 4096, 4097, 4104, 8200}) add({3, classes}, LossReduction::kSum, " sum");
  for (const int64_t classes : {1025, 4100})
    add({19, classes}, LossReduction::kNone, " none");  // more than a grid has blocks
  return c;
}

OpCase mse_case() {
  OpCase c{.name = "mse", .tolerance = 8};
  for (const Shape& x : {Shape{}, Shape{1}, Shape{31}, Shape{33, 10}, Shape{1025}, Shape{2, 10, 5, 7}, Shape{5, 4099},
                         Shape{2, 3, 64, 96}}) {
    c.variants.push_back({.name = to_string(x),
                          .inputs = {{.spec = x}, {.spec = x}},
                          .run = [](std::span<const Tensor> in) { return mse(in[0], in[1]); },
                          .terms = static_cast<double>(x.numel())});
  }
  return c;
}

const RegisterCase classification(cross_entropy_case());
const RegisterCase regression(mse_case());

}  // namespace
}  // namespace plumb::test
