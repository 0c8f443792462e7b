#include "kernels/cpu/conv2d/amx_direct.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/gemm/amx_block.h"
#include "tests/support/conv_layer.h"

namespace plumb::test {
namespace {

constexpr char kName[] = "amx_direct";
constexpr int64_t kRun = 2 * cpu::kAmxDepth;  // channels of a tile's row

class AmxDirect : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::has_amx()) GTEST_SKIP() << "this processor has no AMX";
  }
};

void check_exactly(const ConvLayer& l, Layout layout = Layout::kNhwc) {
  const bool has_dx = l.w[0] / l.p.groups % kRun == 0;
  expect_exact(l, kName, layout, has_dx, false, DType::kBf16);
}

TEST_F(AmxDirect, MatchesTheDefinition) {
  // rows of images that are tiles, less than one, more, and those of several images in one
  check_exactly({{2, 32, 16, 16}, {32, 32, 3, 3}, {.padding = 1}});
  check_exactly({{5, 32, 4, 4}, {64, 32, 3, 3}, {.padding = 1}, true});
  check_exactly({{2, 64, 9, 35}, {96, 64, 3, 3}, {.padding = 1, .activation = Activation::kRelu}, true});
  check_exactly({{1, 32, 1, 1}, {32, 32, 1, 1}, {.stride = 2}});
  check_exactly({{3, 32, 8, 7}, {32, 32, 2, 5}, {.padding = {0, 3, 4, 1}}});
  // outputs: one, a tile and one more, two tiles and one more
  for (const int64_t outputs : {1, 17, 33}) check_exactly({{2, 32, 7, 9}, {outputs, 32, 3, 3}, {.padding = 1}, true});
  // strides, which leave pixels out and share windows' taps out; dilations; windows in the padding altogether
  check_exactly({{2, 32, 30, 29}, {64, 32, 3, 3}, {.stride = 2, .padding = 1}});
  check_exactly({{2, 32, 11, 12}, {32, 32, 2, 2}, {.stride = 3}});
  check_exactly({{2, 32, 17, 16}, {32, 32, 3, 3}, {.stride = {2, 4}, .dilation = {4, 2}, .padding = 3}});
  check_exactly({{2, 32, 5, 5}, {32, 32, 3, 3}, {.stride = {1, 3}, .padding = {6, 7, 5, 8}}});
  // strides beyond the image, of one window and of two; more of them than a window reaches over
  check_exactly({{3, 32, 4, 5}, {32, 32, 3, 3}, {.stride = 2000000000, .padding = 1}});
  check_exactly({{3, 32, 40, 2}, {32, 32, 1, 2}, {.stride = {37, 9}}});
  // groups
  check_exactly({{2, 192, 9, 9}, {64, 96, 3, 3}, {.dilation = {2, 1}, .padding = 2, .groups = 2}, true});
}

TEST_F(AmxDirect, MatchesTheDefinitionOnRandomShapes) {
  constexpr ConvLimits kMost{.images = 4,
                             .least_outputs = 1,
                             .outputs = 70,
                             .channels = 1,
                             .window = 5,
                             .beyond = 20,
                             .stride = 3,
                             .dilation = 3,
                             .padding = 4};
  std::mt19937 engine(17);
  for (int round = 0; round < 60; ++round) {
    ConvLayer l = random_layer(engine, kMost);
    const int64_t channels = kRun * (1 + round % 2);
    const int64_t outputs = round % 3 == 0 ? l.w[0] : l.p.groups * kRun * (1 + round % 2);
    l.x = Shape{l.x[0], l.p.groups * channels, l.x[2], l.x[3]};
    l.w = Shape{outputs, channels, l.w[2], l.w[3]};
    check_exactly(l, round % 5 == 0 ? Layout::kNchw : Layout::kNhwc);
  }
}

// Images that are more than a band each, and such of which several are one.
TEST_F(AmxDirect, MatchesTheDefinitionInManyBands) {
  check_exactly({{1, 256, 70, 66}, {3, 256, 3, 3}, {.padding = 1}});
  check_exactly({{40, 256, 10, 9}, {3, 256, 3, 3}, {.padding = 1}});
}

TEST_F(AmxDirect, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const ConvLayer& l : {ConvLayer{{5, 32, 19, 19}, {64, 32, 3, 3}, {.stride = 2, .padding = 1}},
                             ConvLayer{{3, 64, 12, 13}, {64, 32, 5, 5}, {.padding = 2, .groups = 2}, true}}) {
    expect_same_layer_with_any_threads(l, kName, DType::kBf16);
  }
}

// What lies beside the image in a tile is of no window of it.
TEST_F(AmxDirect, NanStaysInItsWindows) {
  Tensor x = random_tensor(TensorSpec(Shape{2, 32, 9, 9}, DType::kBf16, Layout::kNhwc), 1);
  x.mutable_data<Bfloat16>()[(4 * 9 + 8) * 32 + 5] = Bfloat16(NAN);  // of the first image, row 4, column 8
  const Tensor w = random_tensor(TensorSpec(Shape{32, 32, 3, 3}, DType::kBf16), 2);
  const PolicyScope scope({.algorithm = algorithm_id(kName)});
  const Tensor y = run<Conv2dForward>({.padding = 1, .activation = Activation::kRelu}, {x, w}, x.spec());
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t pixel = i / 32, row = pixel / 9, column = pixel % 9;
    const bool sees = row >= 3 && row <= 5 && column >= 7;
    EXPECT_EQ(std::isnan(static_cast<float>(y.data<Bfloat16>()[static_cast<size_t>(i)])), sees) << i;
  }
}

TEST_F(AmxDirect, DeclinesWhatItIsNotFor) {
  const auto takes = [](Layout layout, DType dtype, int64_t channels, int32_t reach = 1) {
    const TensorSpec in[] = {TensorSpec({2, channels, 5, 5}, dtype, layout), TensorSpec({8, channels, 3, 3}, dtype)};
    const TensorSpec out[] = {TensorSpec({2, 8, 5, 5}, dtype, layout)};
    const Problem<Conv2dParams> p{{.dilation = reach, .padding = reach}, in, out, 1, MathMode::kStrict};
    return cpu::conv2d_amx_direct(cpu::InnerProduct::kForward, p) != nullptr;
  };
  EXPECT_TRUE(takes(Layout::kNhwc, DType::kBf16, 64));
  EXPECT_FALSE(takes(Layout::kNhwc, DType::kBf16, 48));
  EXPECT_FALSE(takes(Layout::kNhwc, DType::kF32, 64));
  EXPECT_FALSE(takes(Layout::kNchw, DType::kBf16, 64));
  EXPECT_FALSE(takes(Layout::kNhwc, DType::kBf16, 64, 1000));  // a band of some gigabytes
}

}  // namespace
}  // namespace plumb::test
