#include "ops/split.h"

#include <gtest/gtest.h>

#include "ops/concat.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"

namespace plumb {
namespace {

using test::bitwise_equal;
using test::refused;

TEST(Split, IsTheInverseOfConcat) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kChwn}) {
    const Tensor x = uniform(TensorSpec(Shape{4, 7, 3, 5}, DType::kF32, layout), -1, 1, 1);
    for (const int dim : {0, 1, -1}) {
      const int64_t extent = x.shape()[dim];
      const TensorList parts = split(x, {1, 0, extent - 1}, dim);
      ASSERT_EQ(parts.size(), 3u);
      EXPECT_EQ(parts[0].shape(), x.shape().with(dim, 1));
      EXPECT_EQ(parts[1].numel(), 0);
      EXPECT_TRUE(bitwise_equal(concat(parts, dim), x));
    }
  }
}

TEST(Split, HasGradientsThroughSomeOfItsOutputsAndThroughAll) {
  Tensor x = uniform(TensorSpec(Shape{3, 6}, DType::kF64), -1, 1, 1).require_grad();
  const auto all = [](std::span<const Tensor> in) {
    const TensorList p = split(in[0], {1, 2, 3}, 1);
    return sum(p[0], {1}) * sum(p[1] * p[1], {1}) + sum(tanh(p[2]), {1});
  };
  const auto some = [](std::span<const Tensor> in) { return square(split(in[0], {1, 2, 3}, 1)[1]); };
  EXPECT_TRUE(test::gradcheck(all, {&x, 1}));
  EXPECT_TRUE(test::gradgradcheck(all, {&x, 1}));
  EXPECT_TRUE(test::gradcheck(some, {&x, 1}));
  EXPECT_TRUE(test::gradgradcheck(some, {&x, 1}));
}

TEST(Split, GivesZerosForWhatNobodyUsed) {
  Tensor x = uniform({2, 4}, -1, 1, 1).require_grad();
  const TensorList parts = split(x, {1, 3}, 1);
  const Tensor dx = grad(parts[1], {x}, parts[1].detached())[0];
  EXPECT_EQ(dx.at({1, 0}), 0);
  EXPECT_EQ(dx.at({1, 3}), x.at({1, 3}));
}

TEST(Split, FreesWhatItKeptOnceAGradientHasRunThroughIt) {
  Tensor x = uniform({2, 4}, -1, 1, 1).require_grad();
  const TensorList parts = split(x, {2, 2}, 1);
  grad(sum(parts[0]), {x});
  EXPECT_TRUE(refused([&] { grad(sum(parts[1]), {x}); }, "backward ran through this graph before"));
}

TEST(Split, RefusesPartsThatDoNotAddUp) {
  const Tensor x = uniform({2, 4}, -1, 1, 1);
  EXPECT_TRUE(refused([&] { split(x, {1, 2}, 1); }, "split: the parts' extents add up to 3, and dimension 1"));
  EXPECT_TRUE(refused([&] { split(x, {3, 2}, 1); }, "split: the parts must be of extents that add up to the 4"));
  EXPECT_TRUE(refused([&] { split(x, {5, -1}, 1); }, "split: the parts must be of extents"));
  EXPECT_TRUE(refused([&] { split(x, {4}, 2); }, "split: dimension 2 of a tensor (2, 4) does not exist"));
  EXPECT_TRUE(refused([&] { split(x, std::span<const int64_t>(), 1); }, "split: the parts' extents add up to 0"));
}

}  // namespace
}  // namespace plumb
