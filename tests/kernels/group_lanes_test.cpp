#include "kernels/cpu/conv2d/group_lanes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/simd.h"
#include "tests/support/conv_layer.h"

namespace plumb::test {
namespace {

using cpu::simd::kLanes;
constexpr char kName[] = "group_lanes";

// A layer of groups of so many channels.
ConvLayer layer(int64_t images, int64_t channels, Size2d image, int64_t of_group, Size2d window, Conv2dParams p,
                bool bias = false) {
  p.groups = static_cast<int32_t>(channels / of_group);
  return {{images, channels, image[0], image[1]}, {channels, of_group, window[0], window[1]}, p, bias};
}

std::vector<ConvLayer> layers() {
  const int64_t n = kLanes;
  return {
      // whole vectors, and a last one that begins early; fewer columns than a block has, and more
      layer(2, n, {5, 4}, 1, {3, 3}, {.padding = 1}),
      layer(2, n + 1, {6, 17}, 1, {3, 3}, {.padding = 1}, true),
      layer(1, 13 * n + 3, {4, 5}, 1, {3, 3}, {.padding = 1, .activation = Activation::kRelu}, true),
      layer(1, 3 * n + 2, {5, 30}, 2, {3, 3}, {.padding = 1}, true),
      layer(2, 2 * n, {7, 9}, 4, {3, 3}, {.padding = 1}),
      layer(1, n + 4, {7, 11}, 4, {2, 5}, {.padding = {1, 0, 2, 2}}, true),
      layer(2, 2 * n, {4, 9}, n, {3, 3}, {.padding = 1, .activation = Activation::kRelu}),
      layer(2, n, {4, 3}, n, {1, 1}, {.stride = 2}, true),
      // windows of more taps below one another than are taken at once; in the padding altogether
      layer(1, n + 2, {17, 13}, 1, {15, 13}, {.padding = {7, 7, 6, 6}}),
      layer(1, 2 * n, {4, 4}, 2, {2, 3}, {.padding = {4, 3, 5, 5}}),
      // more weights than half of a first-level cache holds
      layer(1, 16 * n + 3, {9, 12}, 1, {9, 9}, {.padding = 4, .activation = Activation::kRelu}, true),
      layer(1, 9 * n + 2, {10, 13}, 2, {9, 9}, {.padding = 4}),
      layer(1, 9 * n, {5, 6}, n, {9, 9}, {.padding = 4}, true),
      // strides: that leave pixels out, meet dilations, and are larger than the image
      layer(2, 2 * n, {11, 12}, 4, {3, 3}, {.stride = 2, .padding = 1}),
      layer(2, n + 1, {11, 12}, 1, {2, 2}, {.stride = 3}),
      layer(2, n, {17, 16}, 2, {3, 3}, {.stride = {2, 4}, .dilation = {4, 2}, .padding = 3}),
      layer(1, n, {13, 17}, 1, {5, 4}, {.stride = {3, 2}, .dilation = {2, 3}, .padding = {4, 1, 0, 5}}, true),
      layer(1, n, {3, 2}, 4, {3, 3}, {.stride = 5, .padding = 2}),
  };
}

TEST(GroupLanes, MatchesTheDefinition) {
  for (const ConvLayer& l : layers()) expect_exact(l, kName, Layout::kNhwc);
}

TEST(GroupLanes, MatchesTheDefinitionOnRandomShapes) {
  std::mt19937 engine(11);
  const ConvLimits most{.images = 3,
                        .least_outputs = 1,
                        .outputs = 1,
                        .channels = 1,
                        .window = 5,
                        .beyond = 12,
                        .stride = 3,
                        .dilation = 3,
                        .padding = 4};
  for (int round = 0; round < 60; ++round) {
    ConvLayer l = random_layer(engine, most);
    const int64_t of_group = int64_t{1} << engine() % 3, channels = of_group * (kLanes + engine() % (2 * kLanes));
    l.p.groups = static_cast<int32_t>(channels / of_group);
    l.x = Shape{l.x[0], channels, l.x[2], l.x[3]}, l.w = Shape{channels, of_group, l.w[2], l.w[3]};
    expect_exact(l, kName, round % 3 == 0 ? Layout::kNchw : Layout::kNhwc);
  }
}

TEST(GroupLanes, GivesTheSameBitsWithAnyNumberOfThreads) {
  const ConvLayer l = layer(8, 5 * kLanes + 2, {24, 24}, 2, {3, 3}, {.stride = 2, .padding = 1});
  expect_same_layer_with_any_threads(l, kName);
}

// Neither to other groups, nor to windows that do not see it.
TEST(GroupLanes, NanStaysWhereItIs) {
  constexpr int64_t kOfGroup = 4;
  const int64_t channels = 2 * kLanes + kOfGroup, number = 5;  // of the second group
  const TensorSpec image(Shape{1, channels, 6, 6}, DType::kF32, Layout::kNhwc);
  const TensorSpec weights(Shape{channels, kOfGroup, 3, 3});
  Tensor with_nan = random_tensor(image, 1);
  with_nan.mutable_data<float>()[static_cast<size_t>((2 * 6 + 3) * channels + number)] = NAN;
  const Tensor w = random_tensor(weights, 2), finite = random_tensor(image, 3);
  const PolicyScope scope({.algorithm = algorithm_id(kName)});
  const KernelLog log;
  const Conv2dParams p{.padding = 1, .groups = static_cast<int32_t>(channels / kOfGroup)};
  const Tensor y = run<Conv2dForward>(p, {with_nan, w}, image), dx = run<Conv2dBackwardInput>(p, {with_nan, w}, image);
  const Tensor by_x = run<Conv2dBackwardWeight>(p, {finite, with_nan}, weights);
  const Tensor by_dy = run<Conv2dBackwardWeight>(p, {with_nan, finite}, weights);

  for (const char* kind : {"conv2d_forward:", "conv2d_backward_input:", "conv2d_backward_weight:"}) {
    EXPECT_TRUE(log.has(std::string(kind) + kName));
  }
  const auto is_nan = [](const Tensor& t, int64_t i) { return std::isnan(t.data<float>()[static_cast<size_t>(i)]); };
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t row = i / channels / 6, column = i / channels % 6, group = i % channels / kOfGroup;
    const bool sees_it = group == number / kOfGroup && std::abs(row - 2) <= 1 && std::abs(column - 3) <= 1;
    EXPECT_EQ(is_nan(y, i), sees_it);
    EXPECT_EQ(is_nan(dx, i), sees_it);
  }
  for (int64_t i = 0; i < weights.numel(); ++i) {
    const int64_t output = i / 9 / kOfGroup, input = i / 9 % kOfGroup;
    EXPECT_EQ(is_nan(by_x, i), output / kOfGroup == number / kOfGroup && input == number % kOfGroup);
    EXPECT_EQ(is_nan(by_dy, i), output == number);
  }
}

// Weights beside the image meet nothing, not even zeros.
TEST(GroupLanes, InfiniteWeightsInThePaddingDoNothing) {
  const TensorSpec x(Shape{1, kLanes, 1, 1}, DType::kF32, Layout::kNhwc);
  Tensor w = random_tensor(TensorSpec(Shape{kLanes, 1, 3, 3}), 2);
  for (size_t i = 0; i < static_cast<size_t>(w.numel()); ++i) {
    if (i % 9 != 4) w.mutable_data<float>()[i] = INFINITY;
  }
  const KernelLog log;
  const PolicyScope scope({.algorithm = algorithm_id(kName)});
  const Tensor y =
      run<Conv2dForward>({.padding = 1, .groups = static_cast<int32_t>(kLanes)}, {random_tensor(x, 1), w}, x);
  EXPECT_TRUE(log.has(std::string("conv2d_forward:") + kName));
  for (const float e : y.data<float>()) EXPECT_TRUE(std::isfinite(e));
}

TEST(GroupLanes, DeclinesWhatItIsNotFor) {
  const auto takes = [](int64_t channels, int64_t outputs, int32_t groups, Layout layout = Layout::kNhwc,
                        DType dtype = DType::kF32) {
    const TensorSpec in[] = {TensorSpec({2, channels, 5, 5}, dtype, layout),
                             TensorSpec({outputs, channels / groups, 3, 3}, dtype)};
    const TensorSpec out[] = {TensorSpec({2, outputs, 3, 3}, dtype, layout)};
    const Conv2dParams params{.groups = groups};
    const Problem<Conv2dParams> p{params, in, out, 1, MathMode::kStrict};
    return cpu::conv2d_group_lanes(cpu::InnerProduct::kForward, p) != nullptr;
  };
  EXPECT_TRUE(takes(kLanes, kLanes, 1));
  EXPECT_TRUE(takes(kLanes, kLanes, kLanes));
  EXPECT_FALSE(takes(kLanes - 1, kLanes - 1, kLanes - 1));
  EXPECT_FALSE(takes(2 * kLanes, 2 * kLanes, 1));
  EXPECT_FALSE(takes(6 * kLanes, 6 * kLanes, 2 * kLanes));
  EXPECT_FALSE(takes(kLanes, 2 * kLanes, kLanes));
  EXPECT_FALSE(takes(kLanes, kLanes, kLanes, Layout::kNhwc, DType::kF64));
  EXPECT_FALSE(takes(kLanes, kLanes, kLanes, Layout::kNhwc, DType::kBf16));
  EXPECT_FALSE(takes(kLanes, kLanes, kLanes, Layout::kNchw));
  EXPECT_FALSE(takes(kLanes, kLanes, kLanes, Layout::kChwn));
}

}  // namespace
}  // namespace plumb::test
