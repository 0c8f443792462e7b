// Blocks whose activations are computed again.
#include "train/recomputed.h"

#include <gtest/gtest.h>

#include <thread>

#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"

namespace plumb::training {
namespace {

Tensor block(const Tensor& x, const Tensor& w) { return gelu(conv2d(x, w, {.padding = 1})); }

TEST(RecomputedTest, GradientsAreTheSameToTheBit) {
  const Tensor x = uniform(Shape{2, 3, 8, 8}, -1, 1, 1).require_grad(),
               w = uniform(Shape{3, 3, 3, 3}, -1, 1, 2).require_grad();
  const TensorList expected = grad(sum(square(block(block(x, w), w))), {x, w});
  const TensorList got = grad(sum(square(recomputed(block, recomputed(block, x, w), w))), {x, w});

  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(test::bitwise_equal(got[i], expected[i]));
}

TEST(RecomputedTest, ComputesOnlyWhatIsNeeded) {
  const Tensor x = uniform(Shape{2, 3, 8, 8}, -1, 1, 1), w = uniform(Shape{3, 3, 3, 3}, -1, 1, 2).require_grad();
  const TensorList got = grad(sum(recomputed(block, x, w)), {w});

  EXPECT_TRUE(test::bitwise_equal(got[0], grad(sum(block(x, w)), {w})[0]));
}

TEST(RecomputedTest, WhatTheBlockDoesNotUseHasNoGradient) {
  const Tensor x = uniform(Shape{4}, -1, 1, 1).require_grad(), b = uniform(Shape{4}, -1, 1, 2).require_grad();
  const auto first = [](const Tensor& t, const Tensor&) { return t * t; };
  const TensorList expected = grad(sum(x * x + b), {x, b}), got = grad(sum(recomputed(first, x, b) + b), {x, b});
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(test::bitwise_equal(got[i], expected[i]));
  const auto neither = [](const Tensor& t) { return t.detached(); };
  EXPECT_TRUE(test::bitwise_equal(grad(sum(recomputed(neither, x) + b), {b})[0], expected[1]));
}

// What a block captures is no business of its backward, though it needs a gradient and has a graph of its own.
TEST(RecomputedTest, TheGraphOfWhatTheBlockCapturesIsLeftAlone) {
  const Tensor x = full({3}, 2, DType::kF32).require_grad(), w = full({3}, 3, DType::kF32).require_grad();
  const Tensor h = x * w;
  const auto by_h = [&](const Tensor& t) { return t * h; };
  EXPECT_EQ(grad(sum(recomputed(by_h, h)), {x}, {.retain_graph = true})[0].at({0}), 18);  // h is as good as a number
  EXPECT_EQ(grad(sum(recomputed(by_h, x)), {x}, {.retain_graph = true})[0].at({0}), 6);
  EXPECT_EQ(grad(sum(h), {w})[0].at({0}), 2);
}

// Whose own count of nodes is lower.
TEST(RecomputedTest, TheGraphOfWhatItCapturesIsLeftAloneByAnotherThread) {
  const Tensor x = full({3}, 2, DType::kF32).require_grad(), w = full({3}, 3, DType::kF32).require_grad();
  const Tensor h = x * w;
  const Tensor loss = sum(recomputed([&](const Tensor& t) { return t * h; }, x));
  std::thread([&] { EXPECT_EQ(grad(loss, {x})[0].at({0}), 6); }).join();
  EXPECT_EQ(grad(sum(h), {w})[0].at({0}), 2);
}

TEST(RecomputedTest, RefusesSecondDerivatives) {
  const Tensor x = uniform(Shape{2}, -1, 1, 1).require_grad();
  const Tensor y = sum(recomputed([](const Tensor& t) { return t * t; }, x));
  EXPECT_TRUE(test::refused([&] { grad(y, {x}, {.create_graph = true}); },
                            "recomputed: derivatives beyond the first are not available"));
}

}  // namespace
}  // namespace plumb::training
