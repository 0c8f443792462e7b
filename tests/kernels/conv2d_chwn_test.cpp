#include "kernels/cpu/conv2d/conv2d_chwn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/conv_layer.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

// Against loops over every product, in f64; every candidate that takes the problem is held against them.
void check_layer(const ConvLayer& l, DType dtype) {
  SCOPED_TRACE(describe(l) + " " + to_string(dtype));
  KernelCheck check(4);
  const ConvResults results(l, "direct_chwn", Layout::kChwn, dtype, false);
  for (const char* kind : {"conv2d_forward", "conv2d_backward_input", "conv2d_backward_weight"}) {
    EXPECT_TRUE(check.checked().contains(std::string(kind) + ":direct_chwn"));
  }
}

std::vector<ConvLayer> layers() {
  return {
      // images: a lane, part of a vector, vectors and parts of them
      {{1, 3, 7, 6}, {5, 3, 3, 3}, {.padding = 1}},
      {{3, 10, 6, 7}, {17, 10, 3, 3}, {.padding = 1}, true},
      {{16, 5, 5, 5}, {14, 5, 3, 3}},
      {{17, 16, 5, 4}, {15, 16, 3, 3}, {.stride = 2, .padding = 1}},
      {{33, 3, 6, 5}, {29, 3, 3, 3}, {.padding = 1, .activation = Activation::kRelu}, true},
      {{64, 17, 5, 5}, {31, 17, 3, 3}, {.padding = 1}},
      {{250, 5, 4, 4}, {7, 5, 3, 3}, {.padding = 1}},
      // windows
      {{20, 17, 5, 6}, {10, 17, 1, 1}},
      {{20, 3, 13, 12}, {16, 3, 7, 7}, {.stride = 2, .padding = 1}},
      {{5, 10, 9, 11}, {16, 10, 3, 2}, {.stride = {2, 1}, .dilation = {1, 2}, .padding = {0, 2, 1, 3}}, true},
      {{8, 4, 9, 8}, {6, 4, 5, 5}, {.dilation = {2, 1}, .padding = {4, 4, 2, 2}}},
      {{2, 4, 8, 9}, {5, 4, 2, 2}, {.stride = {3, 3}}},
      {{18, 1, 1, 1025}, {1, 1, 1, 3}, {.padding = {0, 0, 1, 1}}},
      {{19, 17, 1, 1}, {16, 17, 3, 3}, {.padding = 1}},
      // groups
      {{18, 17, 9, 8}, {17, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 17}},
      {{18, 6, 5, 5}, {9, 2, 3, 3}, {.padding = 1, .groups = 3}, true},
  };
}

TEST(Conv2dChwn, MatchesTheDefinition) {
  for (const ConvLayer& l : layers()) {
    check_layer(l, DType::kF32);
    check_layer(l, DType::kBf16);
  }
}

TEST(Conv2dChwn, MatchesTheDefinitionOnRandomShapes) {
  std::mt19937 engine(5);
  const ConvLimits most{.images = 40,
                        .least_outputs = 1,
                        .outputs = 20,
                        .channels = 12,
                        .window = 4,
                        .beyond = 6,
                        .stride = 3,
                        .dilation = 2,
                        .padding = 3};
  for (int round = 0; round < 60; ++round) {
    const ConvLayer l = random_layer(engine, most);
    check_layer(l, round % 4 == 0 ? DType::kBf16 : DType::kF32);
  }
}

// Whole numbers have exact sums: the kernel agrees bit for bit with the others, in their layouts.
TEST(Conv2dChwn, AgreesWithTheOtherLayoutsExactly) {
  const ConvLayer l{{37, 6, 8, 7}, {20, 6, 3, 3}, {.stride = {1, 2}, .padding = {1, 1, 0, 1}}};
  const ConvResults got(l, "direct_chwn", Layout::kChwn, DType::kF32, true);
  const PolicyScope scope({.algorithm = algorithm_id("reference")});
  const Tensor x = small_integers(TensorSpec(l.x), 1, 2), w = small_integers(TensorSpec(l.w), 2, 2);
  const TensorSpec ys = conv2d_output(l.p, x.spec(), w.spec());
  const Tensor dy = small_integers(ys, 4, 2);

  EXPECT_TRUE(equal(got.y, run<Conv2dForward>(l.p, {x, w}, ys)));
  EXPECT_TRUE(equal(got.dx, run<Conv2dBackwardInput>(l.p, {dy, w}, x.spec())));
  EXPECT_TRUE(equal(got.dw, run<Conv2dBackwardWeight>(l.p, {dy, x}, w.spec())));
}

TEST(Conv2dChwn, GivesTheSameBitsWithAnyNumberOfThreads) {
  const ConvLayer l{{40, 20, 9, 9}, {30, 20, 3, 3}, {.padding = {1, 1, 1, 1}}};
  expect_same_with_any_threads([&] {
    const ConvResults r(l, "direct_chwn", Layout::kChwn, DType::kF32, false);
    return std::vector{r.y, r.dx, r.dw};
  });
}

TEST(Conv2dChwn, ReluLetsNanThrough) {
  Tensor x = random_tensor(TensorSpec(Shape{20, 2, 3, 3}, DType::kF32, Layout::kChwn), 1);
  x.mutable_data<float>()[7] = NAN;
  const Tensor w = random_tensor(TensorSpec(Shape{3, 2, 3, 3}), 2);
  const PolicyScope scope({.algorithm = algorithm_id("direct_chwn")});
  const Tensor y = run<Conv2dForward>({.activation = Activation::kRelu}, {x, w},
                                      TensorSpec(Shape{20, 3, 1, 1}, DType::kF32, Layout::kChwn));

  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(std::isnan(y.data<float>()[static_cast<size_t>(i)]), i % 20 == 7);
}

// Kernels of CHWN's own: no other layout is made on the way, neither inside nor as a pack, and no memory is asked for.
TEST(Conv2dChwn, ConvertsNothing) {
  for (const char* algorithm : {"direct_chwn", ""}) {  // by name, and what is first in its layout
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    for (const ConvLayer& l : layers()) {
      for (const DType dtype : {DType::kF32, DType::kBf16}) {
        const TensorSpec x(l.x, dtype, Layout::kChwn), w(l.w, dtype), b(Shape{l.w[0]}, dtype);
        const TensorSpec y = conv2d_output(l.p, x, w);
        for (const auto& p :
             {l.bias ? prepare<Conv2dForward>(l.p, {x, w, b}, {y}) : prepare<Conv2dForward>(l.p, {x, w}, {y}),
              prepare<Conv2dBackwardInput>(l.p, {y, w}, {x}), prepare<Conv2dBackwardWeight>(l.p, {y, x}, {w})}) {
          SCOPED_TRACE(message("{} {} {}", p->kind->name, dtype, describe(l)));
          const KernelInfo& info = p->kernel->info();
          EXPECT_EQ(info.algorithm, "direct_chwn");
          EXPECT_EQ(info.workspace_bytes, 0u);
          EXPECT_EQ(info.conversions, 0);
          EXPECT_TRUE(info.packs.empty());
        }
      }
    }
  }
}

TEST(Conv2dChwn, DeclinesOtherLayoutsAndDtypes) {
  const Conv2dParams p;
  const auto takes = [&](Layout layout, DType dtype) {
    const TensorSpec in[] = {TensorSpec({2, 3, 5, 5}, dtype, layout), TensorSpec({4, 3, 3, 3}, dtype)};
    const TensorSpec out[] = {TensorSpec({2, 4, 3, 3}, dtype, layout)};
    return cpu::conv2d_chwn_forward({p, in, out, 1, MathMode::kStrict}) != nullptr;
  };
  EXPECT_TRUE(takes(Layout::kChwn, DType::kF32));
  EXPECT_TRUE(takes(Layout::kChwn, DType::kBf16));
  EXPECT_FALSE(takes(Layout::kChwn, DType::kF64));
  EXPECT_FALSE(takes(Layout::kNchw, DType::kF32));
  EXPECT_FALSE(takes(Layout::kNhwc, DType::kF32));
}

}  // namespace
}  // namespace plumb::test
