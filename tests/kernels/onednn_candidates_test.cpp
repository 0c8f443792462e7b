// oneDNN's reductions, conversions and broadcasts are offered beside our own kernels, and are as right.
#include <gtest/gtest.h>

#include <limits>

#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/permute.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

TEST(OneDnnCandidates, ConvertAndPermuteAsOursDo) {
  const KernelCheck check(4);
  const Tensor x = random_tensor(TensorSpec(Shape{3, 17, 9, 10}), 1);
  static_cast<float*>(x.value->data)[5] = std::numeric_limits<float>::quiet_NaN();
  static_cast<float*>(x.value->data)[6] = -std::numeric_limits<float>::infinity();
  const Tensor narrow = to(to(x, Layout::kNhwc), DType::kBf16);
  to(narrow, DType::kF32);
  to(narrow, Layout::kChwn);
  permute(x, {3, 1, 0, 2});
  EXPECT_TRUE(check.checked().contains("permute:onednn"));
  EXPECT_TRUE(check.checked().contains("cast:onednn"));
}

TEST(OneDnnCandidates, BroadcastAsOursDo) {
  const KernelCheck check(4);
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kChwn}) {
    const Tensor x = random_tensor({Shape{3, 17, 9, 10}, DType::kF32, layout}, 1);
    add(x, random_tensor({Shape{1, 17, 1, 1}, DType::kF32, layout}, 2));
    sub(x, random_tensor({Shape{1, 17, 1, 1}, DType::kF32, layout}, 2));
    sub(random_tensor({Shape{1, 17, 1, 1}, DType::kF32, layout}, 2), x);  // which it may decline
    mul(x, random_tensor(TensorSpec(Shape{17, 9, 10}), 3));
    div(x, random_tensor(TensorSpec(Shape{9, 1}), 4, 1, 2));
  }
  for (const char* op : {"add", "sub", "mul", "div"})
    EXPECT_TRUE(check.checked().contains(op + std::string(":onednn"))) << op;
}

TEST(OneDnnCandidates, SumAsOursDo) {
  const KernelCheck check(4);
  for (const int64_t n : {2, 1000, 65536}) {
    const Tensor x = random_tensor(TensorSpec(Shape{3, n}), 1, 0, 1);
    sum(x, {1});
    mean(to(x, DType::kBf16), {1});
  }
  EXPECT_TRUE(check.checked().contains("reduce:onednn"));
}

// Its lanes in f32 lose the last digits there, above all of numbers of one sign.
TEST(OneDnnCandidates, AreNoneForLongSums) {
  const KernelCheck check(4);
  sum(random_tensor(TensorSpec(Shape{3, 65537}), 1, 0, 1), {1});
  EXPECT_FALSE(check.checked().contains("reduce:onednn"));
}

}  // namespace
}  // namespace plumb::test
