// What the cases of tests/cases do not say: numbers worked out by hand, the shape rule, errors, and which kernel runs.
#include "ops/conv2d.h"
#include "dispatch/policy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string_view>

#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

// x = 1 2 3   w = 1 0   b = 10: y = 1*1 + 5*2 = 11 at the top left, with nothing turned round.
//     4 5 6       0 2
//     7 8 9
TEST(Conv2d, IsTheCrossCorrelationWorkedOutByHand) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{1, 1, 3, 3}).require_grad();
  const Tensor w = Tensor::from<float>({1, 0, 0, 2}, Shape{1, 1, 2, 2}).require_grad();
  const Tensor b = Tensor::from<float>({10}, Shape{1}).require_grad();
  for (const char* algorithm : {"reference", "direct", "blocked"}) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    const Tensor y = conv2d(x, w, b);
    EXPECT_TRUE(test::equal(y, Tensor::from<float>({21, 24, 30, 33}, Shape{1, 1, 2, 2}))) << algorithm;
    // dy = 1 2    dx is dy laid over w at each place, dw the products of dy with the windows of x, db their sum.
    //      3 4
    const TensorList g = grad(y, {x, w, b}, Tensor::from<float>({1, 2, 3, 4}, Shape{1, 1, 2, 2}));
    EXPECT_TRUE(test::equal(g[0], Tensor::from<float>({1, 2, 0, 3, 6, 4, 0, 6, 8}, Shape{1, 1, 3, 3}))) << algorithm;
    EXPECT_TRUE(test::equal(g[1], Tensor::from<float>({37, 47, 67, 77}, Shape{1, 1, 2, 2}))) << algorithm;
    EXPECT_TRUE(test::equal(g[2], Tensor::from<float>({10}, Shape{1}))) << algorithm;
  }
}

TEST(Conv2d, TheActivationIsAppliedLastAndStopsTheGradient) {
  const Tensor x = Tensor::from<float>({1, -2, 3}, Shape{1, 1, 1, 3}).require_grad();
  const Tensor w = Tensor::from<float>({1}, Shape{1, 1, 1, 1}), b = Tensor::from<float>({-1}, Shape{1}).require_grad();
  const Tensor y = conv2d(x, w, b, {.activation = Activation::kRelu});
  EXPECT_TRUE(test::equal(y, Tensor::from<float>({0, 0, 2}, Shape{1, 1, 1, 3})));
  const TensorList g = grad(sum(y), {x, b});
  EXPECT_TRUE(test::equal(g[0], Tensor::from<float>({0, 0, 1}, Shape{1, 1, 1, 3})));
  EXPECT_EQ(g[1].data<float>()[0], 1);
}

struct ShapeRule {
  Conv2dParams p;
  Shape x, w, y;
};
TEST(Conv2d, TheShapeRuleRoundsDown) {
  const ShapeRule rules[] = {
      {{}, {2, 3, 8, 9}, {5, 3, 3, 3}, {2, 5, 6, 7}},
      {{.padding = 1}, {2, 3, 8, 9}, {5, 3, 3, 3}, {2, 5, 8, 9}},
      {{.stride = {2, 2}}, {1, 3, 8, 9}, {4, 3, 3, 3}, {1, 4, 3, 4}},
      {{.stride = {2, 1}, .dilation = {1, 2}, .padding = {0, 2, 1, 3}}, {2, 10, 9, 11}, {16, 10, 3, 2}, {2, 16, 5, 13}},
      {{.groups = 4}, {1, 8, 5, 5}, {12, 2, 1, 1}, {1, 12, 5, 5}},
      {{.padding = 3}, {0, 1, 1, 1}, {1, 1, 7, 7}, {0, 1, 1, 1}},
  };
  for (const ShapeRule& r : rules) {
    const TensorSpec x(r.x, DType::kF32, Layout::kNhwc);
    EXPECT_EQ(to_string(conv2d_output(r.p, x, TensorSpec(r.w))), to_string(x.with(r.y)));
  }
}

// x, with the padding:  0 1 2 3   w = 1 2 3   The only window could move by 2 rows and by 1 column, so that
//                       0 4 5 6       4 5 6   strides of 3 and 2 are as good as any that are larger.
//                       0 0 0 0       7 8 9
//                       0 0 0 0
//                       0 0 0 0
TEST(Conv2d, StridesPastTheImageAreTheSmallestWhateverThePaddingIs) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, Shape{1, 1, 2, 3}).require_grad();
  const Tensor w = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{1, 1, 3, 3}).require_grad();
  const Tensor dy = Tensor::from<float>({10}, Shape{1, 1, 1, 1});
  const std::set<std::pair<int32_t, int32_t>> smallest{{3, 2}};
  for (const char* algorithm : {"", "reference", "direct", "blocked", "im2col"}) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    for (const int32_t stride : {3, 4, 2147483647}) {
      SCOPED_TRACE(message("{} stride {}", algorithm, stride));
      std::set<std::pair<int32_t, int32_t>> strides;  // of every convolution that runs
      const test::AfterEveryKernel watch([&](const PreparedKernel& p, const Launch&) {
        if (!std::string_view(p.kind->name).starts_with("conv2d_")) return;
        Conv2dParams params;
        std::memcpy(static_cast<void*>(&params), p.params.data(), sizeof params);
        strides.insert({params.stride[0], params.stride[1]});
      });

      const Tensor y = conv2d(x, w, {.stride = {stride, stride}, .padding = {0, 3, 1, 0}});

      ASSERT_EQ(strides, smallest);
      EXPECT_TRUE(test::equal(y, Tensor::from<float>({58}, Shape{1, 1, 1, 1})));
      const TensorList g = grad(y, {x, w}, dy);
      EXPECT_EQ(strides, smallest);
      EXPECT_TRUE(test::equal(g[0], Tensor::from<float>({20, 30, 0, 50, 60, 0}, x.shape())));
      EXPECT_TRUE(test::equal(g[1], Tensor::from<float>({0, 10, 20, 0, 40, 50, 0, 0, 0}, w.shape())));
    }
  }
}

TEST(Conv2d, PaddingIsAllOrHeightAndWidthOrNamed) {
  const TensorSpec x({1, 1, 5, 5}), w({1, 1, 3, 3});
  const auto y = [&](const Conv2dParams& p) { return conv2d_output(p, x, w).shape; };
  EXPECT_EQ(y({.padding = 1}), Shape({1, 1, 5, 5}));
  EXPECT_EQ(y({.padding = {1, 1}}), Shape({1, 1, 5, 5}));
  EXPECT_EQ(y({.padding = {0, 2}}), Shape({1, 1, 3, 7}));
  EXPECT_EQ(y({.padding = {1, 0, 2, 3}}), Shape({1, 1, 4, 8}));
  EXPECT_EQ(y({.stride = 2, .padding = {2, 2}}), Shape({1, 1, 4, 4}));
  EXPECT_EQ(y({.stride = {1, 2}}), Shape({1, 1, 3, 2}));
}

}  // namespace
}  // namespace plumb
