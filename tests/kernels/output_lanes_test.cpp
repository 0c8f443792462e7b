#include "kernels/cpu/conv2d/output_lanes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/simd.h"
#include "tests/support/conv_layer.h"

namespace plumb::test {
namespace {

using cpu::simd::kLanes;
constexpr char kName[] = "output_lanes";

// A layer of groups of so many inputs and outputs each.
ConvLayer layer(int64_t images, int64_t groups, int64_t inputs, int64_t outputs, Size2d image, Size2d window,
                Conv2dParams p, bool bias = false) {
  p.groups = static_cast<int32_t>(groups);
  return {{images, groups * inputs, image[0], image[1]}, {groups * outputs, inputs, window[0], window[1]}, p, bias};
}

// y, and dx where a group has inputs enough, and few weights.
void expect_exact_y_and_dx(const ConvLayer& l, Layout layout) {
  const int64_t weights_of_dx = l.w[0] / l.p.groups * l.w[2] * l.w[3] * kLanes;
  expect_exact(l, kName, layout, 2 * l.w[1] >= kLanes && weights_of_dx <= 4096, false);
}

std::vector<ConvLayer> layers() {
  const int64_t n = kLanes, half = kLanes / 2;
  return {
      // one vector a group, part of one, several, and a last one that begins early; more columns than a block has
      layer(2, 8, 3, n, {6, 40}, {5, 5}, {.padding = 2}),
      layer(1, 8, half, half, {6, 17}, {3, 3}, {.padding = 1}, true),
      layer(2, 3, 5, n - 1, {7, 13}, {3, 3}, {.padding = 1, .activation = Activation::kRelu}, true),
      layer(1, 2, n, 2 * n, {5, 30}, {3, 3}, {.padding = 1}, true),
      layer(1, 2, 2 * n, n, {5, 30}, {2, 3}, {.padding = 1}),
      layer(1, 2, 3, 3 * n + 2, {5, 30}, {3, 3}, {.padding = 1, .activation = Activation::kRelu}, true),
      layer(1, 1, 3, 5 * n, {9, 11}, {3, 3}, {.padding = 1}, true),
      layer(1, 1, n + 3, 4 * n + 1, {4, 6}, {2, 5}, {.padding = {1, 0, 2, 2}}, true),
      layer(1, 30, 1, half, {4, 5}, {3, 3}, {.padding = 1}),
      // windows of one pixel; of rows that are one stretch and, dilated, are not; in the padding altogether
      layer(2, 4, 6, n, {5, 5}, {1, 1}, {}, true),
      layer(1, 1, 7, n, {9, 14}, {3, 3}, {.dilation = 2, .padding = 2}),
      layer(1, 2, half, n, {4, 4}, {2, 3}, {.padding = {4, 3, 5, 5}}),
      layer(1, 1, 2, n, {3, 3}, {7, 7}, {.padding = 6}, true),
      // strides: that leave pixels out, meet dilations, and are larger than the image
      layer(2, 4, 4, n, {11, 12}, {3, 3}, {.stride = 2, .padding = 1}),
      layer(2, 1, half + 1, n + 1, {11, 12}, {2, 2}, {.stride = 3}),
      layer(2, 2, half, n, {17, 16}, {3, 3}, {.stride = {2, 4}, .dilation = {4, 2}, .padding = 3}),
      layer(1, 2, n, n, {3, 2}, {3, 3}, {.stride = 5, .padding = 2}),
  };
}

TEST(OutputLanes, MatchesTheDefinition) {
  for (const ConvLayer& l : layers()) expect_exact_y_and_dx(l, Layout::kNhwc);
}

TEST(OutputLanes, MatchesTheDefinitionOnRandomShapes) {
  std::mt19937 engine(12);
  const ConvLimits most{.images = 3,
                        .least_outputs = kLanes / 2,
                        .outputs = 3 * kLanes,
                        .channels = kLanes,
                        .window = 5,
                        .beyond = 20,
                        .stride = 3,
                        .dilation = 3,
                        .padding = 4};
  for (int round = 0; round < 80; ++round) {
    ConvLayer l = random_layer(engine, most);
    if (l.w.numel() == 0 || l.w[1] * l.w[2] * l.w[3] > 256 || l.w[0] / l.p.groups * l.w[2] * l.w[3] > 256) continue;
    expect_exact_y_and_dx(l, round % 3 == 0 ? Layout::kNchw : Layout::kNhwc);
  }
}

TEST(OutputLanes, GivesTheSameBitsWithAnyNumberOfThreads) {
  const ConvLayer l = layer(8, 3, kLanes, kLanes + 2, {24, 24}, {3, 3}, {.stride = 2, .padding = 1});
  expect_same_layer_with_any_threads(l, kName);
}

// Neither to other groups, nor to windows that do not see it; nor do weights beside the image meet anything.
TEST(OutputLanes, NanStaysWhereItIs) {
  constexpr int64_t kGroups = 3, kInputs = 5, kSize = 6;
  const int64_t outputs = kLanes + 1, number = kInputs + 2;  // of the second group
  const TensorSpec x(Shape{1, kGroups * kInputs, kSize, kSize}, DType::kF32, Layout::kNhwc);
  const TensorSpec y(Shape{1, kGroups * outputs, kSize, kSize}, DType::kF32, Layout::kNhwc);
  Tensor with_nan = random_tensor(x, 1), w = random_tensor(TensorSpec(Shape{kGroups * outputs, kInputs, 3, 3}), 2);
  with_nan.mutable_data<float>()[static_cast<size_t>((2 * kSize + 3) * kGroups * kInputs + number)] = NAN;
  const PolicyScope scope({.algorithm = algorithm_id(kName)});
  const KernelLog log;
  const Conv2dParams p{.padding = 1, .groups = kGroups};
  const Tensor result = run<Conv2dForward>(p, {with_nan, w}, y);
  EXPECT_TRUE(log.has(std::string("conv2d_forward:") + kName));
  for (int64_t i = 0; i < result.numel(); ++i) {
    const int64_t pixel = i / y.shape[1], group = i % y.shape[1] / outputs;
    const bool sees_it = group == 1 && std::abs(pixel / kSize - 2) <= 1 && std::abs(pixel % kSize - 3) <= 1;
    EXPECT_EQ(std::isnan(result.data<float>()[static_cast<size_t>(i)]), sees_it) << i;
  }
  for (size_t i = 0; i < static_cast<size_t>(w.numel()); ++i) {
    if (i % 9 != 4) w.mutable_data<float>()[i] = INFINITY;
  }
  const TensorSpec pixel(Shape{1, kGroups * kInputs, 1, 1}, DType::kF32, Layout::kNhwc);
  const Tensor alone = run<Conv2dForward>(p, {random_tensor(pixel, 3), w},
                                          TensorSpec(Shape{1, kGroups * outputs, 1, 1}, DType::kF32, Layout::kNhwc));
  for (const float e : alone.data<float>()) EXPECT_TRUE(std::isfinite(e));
}

TEST(OutputLanes, DeclinesWhatItIsNotFor) {
  using enum cpu::InnerProduct;
  const auto takes = [](cpu::InnerProduct which, int64_t inputs, int64_t outputs, Layout layout = Layout::kNhwc,
                        DType dtype = DType::kF32, int64_t window = 3) {
    const TensorSpec x({2, 2 * inputs, 17, 17}, dtype, layout), w({2 * outputs, inputs, window, window}, dtype);
    const TensorSpec y({2, 2 * outputs, 18 - window, 18 - window}, dtype, layout);
    const TensorSpec in[] = {which == kForward ? x : y, w}, out[] = {which == kForward ? y : x};
    const Conv2dParams params{.groups = 2};
    const Problem<Conv2dParams> p{params, in, out, 1, MathMode::kStrict};
    return cpu::conv2d_output_lanes(which, p) != nullptr;
  };
  EXPECT_TRUE(takes(kForward, 1, kLanes / 2));
  EXPECT_FALSE(takes(kForward, kLanes, kLanes / 2 - 1));
  EXPECT_TRUE(takes(kBackwardInput, kLanes / 2, 1));
  EXPECT_FALSE(takes(kBackwardInput, kLanes / 2 - 1, kLanes));
  EXPECT_TRUE(takes(kForward, 4096 / kLanes / 16, kLanes, Layout::kNhwc, DType::kF32, 4));
  EXPECT_FALSE(takes(kForward, 4096 / kLanes / 16 + 1, kLanes, Layout::kNhwc, DType::kF32, 4));
  EXPECT_FALSE(takes(kForward, 4, kLanes, Layout::kNhwc, DType::kF64));
  EXPECT_FALSE(takes(kForward, 4, kLanes, Layout::kNhwc, DType::kBf16));
  EXPECT_FALSE(takes(kForward, 4, kLanes, Layout::kNchw));
  EXPECT_FALSE(takes(kForward, 4, kLanes, Layout::kChwn));
}

}  // namespace
}  // namespace plumb::test
