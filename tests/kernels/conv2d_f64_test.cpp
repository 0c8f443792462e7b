#include "kernels/cpu/conv2d/conv2d_f64.h"

#include <gtest/gtest.h>

#include "tests/support/conv_layer.h"

namespace plumb::test {
namespace {

constexpr char kName[] = "im2col";

void expect_exact_in_f64(const ConvLayer& l, Layout layout) { expect_exact(l, kName, layout, true, true, DType::kF64); }

TEST(Conv2dF64, BlocksOfEveryKindMatchTheDefinition) {
  const std::vector<ConvLayer> layers = {
      // pixels: of several small images, the last ones fewer; of one image, in parts, the last one shorter
      {{50, 3, 4, 4}, {5, 3, 3, 3}, {.padding = 1}, true},
      {{3, 4, 13, 19}, {6, 4, 3, 3}, {.padding = 1, .activation = Activation::kRelu}, true},
      // channels: more than a block has, and windows that have more taps than one
      {{2, 61, 5, 6}, {7, 61, 3, 3}, {.padding = 1}},
      {{1, 3, 19, 18}, {4, 3, 17, 16}, {.padding = 2}, true},
      // outputs: more than a block has; more than a tile of a product, in each direction
      {{2, 5, 4, 5}, {251, 5, 1, 3}, {.padding = {0, 0, 1, 1}}, true},
      {{2, 130, 12, 13}, {125, 130, 1, 1}, {}},
      // groups of several and of one channel; strides, dilation, uneven padding
      {{3, 12, 9, 8}, {8, 3, 3, 3}, {.stride = 2, .padding = {0, 1, 2, 0}, .groups = 4}, true},
      {{2, 31, 7, 9}, {62, 1, 3, 3}, {.dilation = 2, .padding = 2, .groups = 31}},
      {{1, 2, 3, 3}, {3, 2, 3, 3}, {.stride = 2147483647, .padding = 1}},
  };
  for (const ConvLayer& l : layers) {
    for (const Layout layout : kPublicLayouts) expect_exact_in_f64(l, layout);
  }
}

TEST(Conv2dF64, MatchesTheDefinitionOnRandomShapes) {
  std::mt19937 engine(21);
  const ConvLimits most{.images = 9,
                        .least_outputs = 1,
                        .outputs = 9,
                        .channels = 5,
                        .window = 5,
                        .beyond = 12,
                        .stride = 3,
                        .dilation = 3,
                        .padding = 4};
  for (int round = 0; round < 60; ++round) {
    expect_exact_in_f64(random_layer(engine, most), kPublicLayouts[round % 3]);
  }
}

TEST(Conv2dF64, GivesTheSameBitsWithAnyNumberOfThreads) {
  expect_same_layer_with_any_threads({{7, 33, 14, 15}, {40, 33, 3, 3}, {.stride = 2, .padding = 1}, true}, kName,
                                     DType::kF64);
}

}  // namespace
}  // namespace plumb::test
