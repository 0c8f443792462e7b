#include "kernels/cpu/conv2d/implicit_gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/packed_product.h"
#include "tests/support/conv_layer.h"

namespace plumb::test {
namespace {

constexpr char kName[] = "implicit_gemm";
constexpr ConvLimits kMost{.images = 4,
                           .least_outputs = 4,
                           .outputs = 40,
                           .channels = 40,
                           .window = 5,
                           .beyond = 9,
                           .stride = 4,
                           .dilation = 3,
                           .padding = 4};

void check_exactly(const ConvLayer& l, Layout layout = Layout::kNhwc) { expect_exact(l, kName, layout, l.w[1] >= 4); }

std::vector<ConvLayer> layers() {
  return {
      // windows: of pixels, rows and columns; with taps that are neighbours in memory and such that are not
      {{2, 4, 6, 7}, {4, 4, 1, 1}, {.stride = 2}},
      {{2, 20, 9, 8}, {17, 20, 3, 3}, {.padding = 1}, true},
      {{1, 5, 9, 31}, {33, 5, 1, 7}, {.padding = {0, 0, 3, 3}}},
      {{1, 5, 31, 9}, {9, 5, 7, 1}, {.padding = {3, 3, 0, 0}, .activation = Activation::kRelu}, true},
      {{2, 16, 14, 13}, {8, 16, 3, 3}, {.dilation = 2, .padding = 2}},
      {{2, 16, 14, 13}, {8, 16, 3, 3}, {.dilation = {1, 3}, .padding = {1, 0, 2, 3}}},
      // strides: that share windows' taps out, leave pixels out, and meet dilations
      {{2, 8, 11, 12}, {16, 8, 3, 3}, {.stride = 2, .padding = 1}},
      {{2, 8, 11, 12}, {16, 8, 2, 2}, {.stride = 3}},
      {{2, 8, 17, 16}, {16, 8, 3, 3}, {.stride = {2, 4}, .dilation = {4, 2}, .padding = 3}},
      {{2, 9, 13, 17}, {5, 9, 5, 4}, {.stride = {3, 2}, .dilation = {2, 3}, .padding = {4, 1, 0, 5}}, true},
      {{1, 4, 3, 2}, {6, 4, 3, 3}, {.stride = 5, .padding = 2}},  // larger than the image
      // fewer channels than are read where they lie: rows of a window longer than a vector, and than a part of the
      // depth
      {{2, 2, 12, 20}, {8, 2, 3, 11}, {.padding = {1, 1, 5, 5}}},
      {{1, 2, 20, 20}, {8, 2, 17, 17}, {.padding = 8}},
      // windows in the padding altogether, or each by another part
      {{2, 3, 9, 9}, {8, 3, 7, 7}, {.padding = 6}},
      {{2, 8, 4, 4}, {8, 8, 2, 3}, {.padding = {4, 3, 5, 5}}},
      // groups
      {{2, 24, 6, 7}, {24, 4, 3, 3}, {.stride = 2, .padding = 1, .groups = 6}, true},
      {{2, 40, 6, 5}, {20, 8, 1, 1}, {.groups = 5}},
      {{2, 6, 13, 12}, {10, 3, 3, 3}, {.stride = 2, .dilation = 3, .padding = 4, .groups = 2}, true},
      {{2, 24, 7, 7}, {12, 8, 3, 3}, {.padding = 1, .groups = 3}, true},
      {{2, 8, 9, 7}, {8, 4, 3, 2}, {.stride = 2, .dilation = {1, 2}, .padding = {1, 0, 1, 2}, .groups = 2}},
      // parts of the depth; few rows, and more than a block
      {{1, 48, 9, 10}, {40, 48, 3, 3}, {.padding = 1}},
      {{1, 3 * cpu::kMostPackedDepth, 30, 23}, {24, 3 * cpu::kMostPackedDepth, 1, 1}, {.padding = {0, 0, 0, 1}}},
      {{3, 33, 21, 20}, {20, 33, 4, 5}, {.stride = 2, .padding = 2}, true},
      {{2, 3, 40, 40}, {48, 3, 7, 7}, {.stride = 2, .padding = 3}},
      // spans of the depth of a gradient whose columns have more runs of taps than are packed at once
      {{1, 4, 96, 96}, {8, 2, 17, 17}, {.padding = 8, .groups = 2}},
  };
}

TEST(ImplicitGemm, MatchesTheDefinition) {
  for (const ConvLayer& l : layers()) check_exactly(l);
}

TEST(ImplicitGemm, MatchesTheDefinitionOnRandomShapes) {
  std::mt19937 engine(7);
  for (int round = 0; round < 60; ++round) {
    ConvLayer l = random_layer(engine, kMost);
    if (l.w[1] * l.w[2] * l.w[3] < 4) continue;
    if (l.w[2] * l.w[3] == 1) l.p.stride[0] = 2;  // else it is a product of pixels
    check_exactly(l, round % 3 == 0 ? Layout::kNchw : Layout::kNhwc);
  }
}

void check_gradient_of_bf16_weights(const ConvLayer& l) {
  SCOPED_TRACE(describe(l));
  const auto whole = [&](const Shape& s, uint64_t seed) {
    return small_integers(TensorSpec(s, DType::kBf16, Layout::kNhwc), seed, 2);
  };
  const TensorSpec w(l.w, DType::kBf16);
  const Tensor x = whole(l.x, 1), dy = whole(conv2d_output(l.p, x.spec(), w).shape, 2);
  const auto by = [&](const char* algorithm) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    return run<Conv2dBackwardWeight>(l.p, {dy, x}, w);
  };
  const KernelLog log;
  const Tensor dw = by(kName);
  EXPECT_TRUE(log.has("conv2d_backward_weight:implicit_gemm"));
  EXPECT_TRUE(equal(dw, by("reference")));
}

// In bf16 two pixels are a word: their number is odd or even, and neighbours are of one row, of two, or of two images.
TEST(ImplicitGemm, GradientsOfWeightsInBf16MatchTheDefinition) {
  if (!cpu::kMultiplies<Bfloat16>) GTEST_SKIP() << "this processor does not multiply bf16";
  for (const ConvLayer& l : layers()) check_gradient_of_bf16_weights(l);
  check_gradient_of_bf16_weights({{5, 6, 7, 7}, {6, 6, 3, 3}, {.stride = 2}});
  check_gradient_of_bf16_weights({{40, 8, 41, 41}, {8, 8, 3, 3}, {.stride = 2}});  // spans of the depth
  std::mt19937 engine(11);
  for (int round = 0; round < 40; ++round) {
    ConvLayer l = random_layer(engine, kMost);
    if (l.w[1] * l.w[2] * l.w[3] < 4) continue;
    if (l.w[2] * l.w[3] == 1) l.p.stride[0] = 2;  // else it is a product of pixels
    check_gradient_of_bf16_weights(l);
  }
}

// By AMX, where the depth has words of two channels or taps: a gradient of x needs an even number of outputs.
void check_exactly_in_bf16(const ConvLayer& l, Layout layout = Layout::kNhwc) {
  const bool has_dx = l.w[1] >= 4 && l.w[0] / l.p.groups % 2 == 0;
  expect_exact(l, kName, layout, has_dx, true, DType::kBf16);
}

TEST(ImplicitGemm, MatchesTheDefinitionInBf16WithAmx) {
  if (!cpu::has_amx()) GTEST_SKIP() << "this processor has no AMX";
  for (const ConvLayer& l : layers()) check_exactly_in_bf16(l);
  check_exactly_in_bf16({{3, 64, 15, 13}, {34, 64, 3, 3}, {.padding = 2}, true});  // whole rows of tiles
  check_exactly_in_bf16({{2, 32, 30, 29}, {64, 32, 3, 3}, {.stride = 2, .padding = 1}});
  check_exactly_in_bf16({{2, 192, 9, 9}, {32, 96, 3, 3}, {.dilation = {2, 1}, .padding = 2, .groups = 2}});
  std::mt19937 engine(13);
  for (int round = 0; round < 60; ++round) {
    ConvLayer l = random_layer(engine, kMost);
    if (l.w[1] * l.w[2] * l.w[3] < 4) continue;
    if (l.w[2] * l.w[3] == 1) l.p.stride[0] = 2;  // else it is a product of pixels
    check_exactly_in_bf16(l, round % 3 == 0 ? Layout::kNchw : Layout::kNhwc);
  }
}

TEST(ImplicitGemm, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const ConvLayer& l : {ConvLayer{{8, 20, 19, 19}, {30, 20, 3, 3}, {.stride = 2, .padding = 1}},
                             ConvLayer{{4, 40, 12, 12}, {40, 10, 5, 5}, {.padding = 2, .groups = 4}}}) {
    expect_same_with_any_threads([&] {
      const ConvResults r(l, kName, Layout::kNhwc, DType::kF32, false);
      return std::vector{r.y, r.dx, r.dw};
    });
  }
}

TEST(ImplicitGemm, GradientsOfWeightsInBf16AreTheSameWithAnyNumberOfThreads) {
  const ConvLayer l{{8, 20, 19, 19}, {30, 20, 3, 3}, {.stride = 2, .padding = 1}};
  expect_same_with_any_threads(
      [&] { return std::vector{ConvResults(l, kName, Layout::kNhwc, DType::kBf16, false).dw}; });
  if (cpu::has_amx()) expect_same_layer_with_any_threads(l, kName, DType::kBf16);
}

TEST(ImplicitGemm, ReluLetsNanThrough) {
  Tensor x = random_tensor(TensorSpec(Shape{20, 8, 3, 3}, DType::kF32, Layout::kNhwc), 1);
  x.mutable_data<float>()[7 * 8 * 9] = NAN;
  const Tensor w = random_tensor(TensorSpec(Shape{5, 8, 3, 3}), 2);
  const PolicyScope scope({.algorithm = algorithm_id(kName)});
  const Tensor y = run<Conv2dForward>({.activation = Activation::kRelu}, {x, w},
                                      TensorSpec(Shape{20, 5, 1, 1}, DType::kF32, Layout::kNhwc));

  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(std::isnan(y.data<float>()[static_cast<size_t>(i)]), i / 5 == 7);
}

TEST(ImplicitGemm, DeclinesWhatItIsNotFor) {
  const auto takes = [](Layout layout, DType dtype, int64_t outputs) {
    const TensorSpec in[] = {TensorSpec({2, 8, 5, 5}, dtype, layout), TensorSpec({outputs, 8, 3, 3}, dtype)};
    const TensorSpec out[] = {TensorSpec({2, outputs, 3, 3}, dtype, layout)};
    const Problem<Conv2dParams> p{{}, in, out, 1, MathMode::kStrict};
    return cpu::conv2d_implicit_gemm(cpu::InnerProduct::kForward, p) != nullptr;
  };
  EXPECT_TRUE(takes(Layout::kNhwc, DType::kF32, 4));
  EXPECT_FALSE(takes(Layout::kNhwc, DType::kF32, 3));
  EXPECT_FALSE(takes(Layout::kNhwc, DType::kF64, 4));
  EXPECT_EQ(takes(Layout::kNhwc, DType::kBf16, 4), cpu::has_amx());
  EXPECT_FALSE(takes(Layout::kNchw, DType::kF32, 4));
  EXPECT_FALSE(takes(Layout::kChwn, DType::kF32, 4));
}

}  // namespace
}  // namespace plumb::test
