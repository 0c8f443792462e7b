// A gradient added to what there is: a kernel without a gradient, and so without a case.
#include "kernels/accumulate.h"

#include <gtest/gtest.h>

#include "dispatch/gate.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

TEST(AccumulateTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  test::KernelCheck check(1);
  for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) {
    for (const int64_t n : {0, 1, 2, 3, 7, 15, 17, 31, 33, 1025, 20000}) {
      const Tensor total = test::small_integers({Shape{n}, t}, 1), term = test::small_integers({Shape{n}, t}, 2);
      update<Accumulate>({}, {total, term}, Writes{0, 1});
      update<Accumulate>({}, {total, term, test::small_integers({Shape{n}, t}, 3)}, Writes{0, 1});
    }
  }
  EXPECT_FALSE(check.checked().empty());
}

}  // namespace
}  // namespace plumb
