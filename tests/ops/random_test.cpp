// Random tensors: every kernel gives the same numbers. The numbers themselves: tests/core/random_test.cpp.
#include "ops/random.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

TEST(RandomTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  test::KernelCheck check(2);
  for (const DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8}) {
    for (const int64_t n : {0, 1, 3, 4, 31, 33, 1025, 20000}) {
      const TensorSpec spec(Shape{n}, t);
      const Tensor whole = uniform(spec, 3, 200, 7), again = uniform(spec, 3, 200, 7);
      EXPECT_TRUE(test::bitwise_equal(whole, again));
      if (is_floating(t)) normal(spec, 1, 2, 8);
    }
  }
  EXPECT_FALSE(check.checked().empty());
}

}  // namespace
}  // namespace plumb
