// Every kernel of every optimizer against the reference; kernels without a gradient, and so without a case.
#include <gtest/gtest.h>

#include "ops/convert.h"
#include "tests/optim/optimizers.h"
#include "tests/support/kernel_check.h"

namespace plumb::optim {
namespace {

TEST(OptimizerKernelsTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  const Shape shapes[] = {{1}, {31}, {0, 3}, {33}, {1025}, {9001}, {16, 3, 3, 3}, {}};
  for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) {
    for (const Make& make : every_optimizer()) {
      const auto w = parameters_of(shapes, 1, t);
      const auto optimizer = make(w);
      test::KernelCheck check(8);

      optimizer->step(made(shapes, 20, t));

      EXPECT_FALSE(check.checked().empty());
    }
  }
}

// Some weights with copies in bf16 and some without, in turn, whichever comes last.
TEST(OptimizerKernelsTest, CopiesOfSomeWeights) {
  const Shape shapes[] = {{1}, {31}, {0, 3}, {33}, {1025}, {9001}, {16, 3, 3, 3}, {}};
  for (const size_t odd : {size_t{0}, size_t{1}}) {
    for (const Make& make : every_optimizer()) {
      const auto w = parameters_of(shapes, 1);
      auto gradients = made(shapes, 20), copies = made(shapes, 40, DType::kBf16);
      for (size_t i = 0; i < w.size(); ++i) {
        if (i % 2 == odd) {
          gradients[i] = to(gradients[i], DType::kBf16);
        } else {
          copies[i] = {};
        }
      }
      const auto optimizer = make(w);
      test::KernelCheck check(8);

      optimizer->step(gradients, copies);

      EXPECT_FALSE(check.checked().empty());
    }
  }
}

}  // namespace
}  // namespace plumb::optim
