#include "ops/copy.h"

#include <gtest/gtest.h>

#include "graph/program.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

using test::bitwise_equal;
using test::refused;

TEST(Copy, ACloneHasMemoryOfItsOwnAndAGradient) {
  const Tensor x = uniform(TensorSpec({2, 3, 4, 5}, DType::kF32, Layout::kChwn), -1, 1, 1).require_grad();
  Tensor y = x.clone();
  EXPECT_EQ(y.spec(), x.spec());
  EXPECT_TRUE(bitwise_equal(y, x));
  EXPECT_TRUE(bitwise_equal(grad(sum(square(y)), {x})[0], (2 * x).detached()));
  y.mutable_data<float>()[0] = 7;
  EXPECT_NE(x.data<float>()[0], 7);
}

TEST(Copy, CopyFromWritesTheMemoryThatHandlesShare) {
  Tensor x = zeros({3});
  const Tensor same = x, wide = reshape(x, {3, 1});
  const uint32_t version = x.value->version();

  x.copy_from(Tensor::from({1.0f, 2.0f, 3.0f}, {3}));
  x.copy_from(same);  // itself: nothing to do

  EXPECT_EQ(same.at({2}), 3);
  EXPECT_EQ(wide.at({-1, 0}), 3);
  EXPECT_EQ(x.value->version(), version + 1);
}

TEST(Copy, WhatWasKeptNoticesIt) {
  Tensor w = ones({3});
  const Tensor x = ones({3}).require_grad(), y = sum(x * w);
  w.copy_from(x.detached());
  EXPECT_TRUE(refused([&] { grad(y, {x}); }, "was written to in between"));
}

TEST(Copy, IsCaptured) {
  Tensor state = zeros({2});
  const Tensor by = ones({2});
  Program p = capture([&] { state.copy_from(state + by); });
  EXPECT_EQ(state.at({0}), 0);
  for (int i = 0; i < 3; ++i) p.run();
  EXPECT_EQ(state.at({0}), 3);
}

TEST(Copy, OtherSpecsAreRefusedWithTheWayOut) {
  Tensor x = zeros({1, 2, 2, 2});
  EXPECT_TRUE(
      refused([&] { x.copy_from(zeros({2})); }, "copy_from: this is f32 (1, 2, 2, 2) nchw and the other f32 (2)"));
  EXPECT_TRUE(refused([&] { x.copy_from(zeros({1, 2, 2, 2}, DType::kF64)); }, "convert the other with to(dtype)"));
  EXPECT_TRUE(refused([&] { x.copy_from(to(x, Layout::kNhwc)); }, "convert the other with to(layout)"));
  EXPECT_TRUE(refused([&] { x.copy_from({}); }, "copy_from: the other is an empty tensor"));
  EXPECT_TRUE(refused([&] { Tensor().clone(); }, "clone: x is an empty tensor"));
}

}  // namespace
}  // namespace plumb
