// Filled tensors and copies of whole ones: kernels without a gradient, and so without a case.
#include "ops/fill.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

constexpr DType kDtypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8};
constexpr int64_t kExtents[] = {0, 1, 2, 3, 7, 15, 17, 31, 33, 1025, 20000};

TEST(FillTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  test::KernelCheck check(1);
  for (const DType t : kDtypes) {
    for (const int64_t n : kExtents) {
      const Tensor x = full(Shape{n}, 77, t);
      EXPECT_TRUE(n == 0 || x.at({n - 1}) == 77) << x.spec().bytes() << " bytes";
    }
  }
  EXPECT_FALSE(check.checked().empty());
}

TEST(CopyTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  test::KernelCheck check(1);
  for (const DType t : kDtypes) {
    for (const int64_t n : kExtents) {
      const Tensor x = test::random_tensor({Shape{n}, t}, 1, 0, 100), y = x.clone();
      EXPECT_TRUE(test::bitwise_equal(x, y));
      Tensor z = full(Shape{n}, 1, t);
      z.copy_from(x);
      EXPECT_TRUE(test::bitwise_equal(x, z));
    }
  }
  EXPECT_TRUE(std::ranges::any_of(check.checked(), [](const std::string& k) { return k.starts_with("copy:"); }));
  EXPECT_TRUE(std::ranges::any_of(check.checked(), [](const std::string& k) { return k.starts_with("copy_into:"); }));
}

}  // namespace
}  // namespace plumb
