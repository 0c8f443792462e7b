// What the cases of tests/cases do not say: numbers worked out by hand, the shape rule, errors, and which kernel runs.
#include "ops/conv2d.h"
#include "dispatch/policy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include "dispatch/kernel_cache.h"
#include "dispatch/machine.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {

using detail::Ref;
namespace {

using test::refused;

Policy forced(const char* algorithm) { return {.algorithm = algorithm_id(algorithm)}; }
Conv2dParams padded(int32_t by) { return {.padding = {by, by, by, by}}; }
// Forward and both backwards.
std::array<Ref<PreparedKernel>, 3> kernels_of(const Conv2dParams& p, const TensorSpec& x, const TensorSpec& w) {
  const TensorSpec y = conv2d_output(p, x, w);
  return {prepare<Conv2dForward>(p, {x, w}, {y}), prepare<Conv2dBackwardInput>(p, {y, w}, {x}),
          prepare<Conv2dBackwardWeight>(p, {y, x}, {w})};
}

// x = 1 2 3   w = 1 0   b = 10: y = 1*1 + 5*2 = 11 at the top left, with nothing turned round.
//     4 5 6       0 2
//     7 8 9
TEST(Conv2d, IsTheCrossCorrelationWorkedOutByHand) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{1, 1, 3, 3}).require_grad();
  const Tensor w = Tensor::from<float>({1, 0, 0, 2}, Shape{1, 1, 2, 2}).require_grad();
  const Tensor b = Tensor::from<float>({10}, Shape{1}).require_grad();
  for (const char* algorithm : {"reference", "direct", "blocked"}) {
    const PolicyScope scope(forced(algorithm));
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
      {padded(1), {2, 3, 8, 9}, {5, 3, 3, 3}, {2, 5, 8, 9}},
      {{.stride = {2, 2}}, {1, 3, 8, 9}, {4, 3, 3, 3}, {1, 4, 3, 4}},
      {{.stride = {2, 1}, .dilation = {1, 2}, .padding = {0, 2, 1, 3}}, {2, 10, 9, 11}, {16, 10, 3, 2}, {2, 16, 5, 13}},
      {{.groups = 4}, {1, 8, 5, 5}, {12, 2, 1, 1}, {1, 12, 5, 5}},
      {padded(3), {0, 1, 1, 1}, {1, 1, 7, 7}, {0, 1, 1, 1}},
  };
  for (const ShapeRule& r : rules) {
    const TensorSpec x(r.x, DType::kF32, Layout::kNhwc);
    EXPECT_EQ(to_string(conv2d_output(r.p, x, TensorSpec(r.w))), to_string(x.with(r.y)));
  }
}

TEST(Conv2d, RefusesWhatDoesNotFitTogether) {
  const TensorSpec x(Shape{2, 6, 5, 5}), w(Shape{4, 6, 3, 3});
  const auto says = [&](const Conv2dParams& p, const TensorSpec& xs, const TensorSpec& ws, const char* sentence) {
    EXPECT_TRUE(refused([&] { conv2d_output(p, xs, ws); }, sentence));
  };
  says({}, TensorSpec(Shape{2, 6, 5}), w, "conv2d: x is f32 (2, 6, 5) nchw; it must be (N, C, H, W)");
  says({}, x, TensorSpec(Shape{4, 6, 3}), "it must be (OC, IC / groups, KH, KW), row-major");
  says({}, x, w.with(Layout::kNhwc), "it must be (OC, IC / groups, KH, KW), row-major");
  says({}, x, w.with(DType::kBf16), "conv2d: x is f32 and w is bf16; both must be of one floating dtype");
  says({}, x, TensorSpec(Shape{4, 5, 3, 3}), "conv2d: w has 5 input channels in 1 groups, x has 6");
  says({.groups = 3}, x, TensorSpec(Shape{4, 2, 3, 3}),
       "conv2d: w has 4 output channels, which 3 groups do not divide");
  says({.stride = {0, 1}}, x, w, "conv2d: stride 0 and dilation 1 must be at least 1");
  says({.padding = {0, -1, 0, 0}}, x, w, "conv2d: a padding is -1");
  says({}, x, TensorSpec(Shape{4, 6, 7, 3}),
       "conv2d: the kernel reaches over 7 rows or columns, and x has a height of 5");
  says({.dilation = {1, 3}}, x, w, "x has a width of 5");
  says({.dilation = {1 << 30, 1}}, TensorSpec(Shape{1, 1, 1, 1}), TensorSpec(Shape{1, 1, int64_t{1} << 40, 1}),
       "conv2d: the kernel reaches over 9223372036854775807 rows or columns");
  says({}, x, TensorSpec(Shape{0, 6, 3, 3}), "conv2d: w (0, 6, 3, 3) has no elements");
  EXPECT_TRUE(refused([&] { conv2d(Tensor::empty(x), Tensor::empty(w), Tensor::empty(TensorSpec(Shape{5}))); },
                      "conv2d: b is f32 (5) nchw; it must be f32 (4)"));
  EXPECT_TRUE(refused([&] { conv2d(Tensor::empty(x), Tensor()); }, "conv2d: w is an empty tensor"));
}

// Which algorithm runs when it is asked for by name: itself where it applies, and visibly another where it does not.
struct Asked {
  const char* algorithm;
  Layout layout;
  DType dtype;
  int64_t kernel;
  int32_t stride;
  const char* runs;  // the prefix of what info() says, for all three kernels
};
std::ostream& operator<<(std::ostream& out, const Asked& a) {
  return out << a.algorithm << " " << to_string(a.layout) << " " << to_string(a.dtype) << " " << a.kernel << " "
             << a.stride;
}
class Conv2dAlgorithms : public testing::TestWithParam<Asked> {};

TEST_P(Conv2dAlgorithms, AreTheOnesThatAreNamed) {
  const Asked& a = GetParam();
  const Conv2dParams p{.stride = {a.stride, a.stride}, .padding = {1, 1, 1, 1}};
  const TensorSpec x(Shape{2, 32, 12, 12}, a.dtype, a.layout), w(Shape{16, 32, a.kernel, a.kernel}, a.dtype);
  const TensorSpec y = conv2d_output(p, x, w);
  const PolicyScope scope(forced(a.algorithm));
  for (const Ref<PreparedKernel>& kernel : kernels_of(p, x, w)) {
    const KernelInfo& info = kernel->kernel->info();
    EXPECT_TRUE(info.algorithm.starts_with(a.runs))
        << kernel->kind->name << " is " << info.algorithm << ", " << info.name;
    EXPECT_FALSE(info.name.empty());
    EXPECT_EQ(info.flops, 2.0 * static_cast<double>(y.numel() * 32 * a.kernel * a.kernel));
  }
}

INSTANTIATE_TEST_SUITE_P(, Conv2dAlgorithms,
                         testing::Values(Asked{"direct", Layout::kNchw, DType::kF32, 3, 1, "direct"},
                                         Asked{"direct", Layout::kNhwc, DType::kF32, 3, 1, "direct"},
                                         Asked{"direct", Layout::kNhwc, DType::kF32, 5, 2, "direct"},
                                         Asked{"blocked", Layout::kNchw, DType::kF32, 3, 1, "blocked"},
                                         Asked{"blocked", Layout::kNhwc, DType::kF32, 3, 2, "blocked"},
                                         Asked{"blocked", Layout::kChwn, DType::kF32, 3, 1, "blocked"},
                                         Asked{"winograd_f2x2", Layout::kNhwc, DType::kF32, 3, 1, "winograd_f2x2"},
                                         Asked{"winograd_f4x4", Layout::kNhwc, DType::kF32, 3, 1, "winograd_f4x4"},
                                         Asked{"winograd", Layout::kNhwc, DType::kF32, 3, 1, "winograd_f"},
                                         Asked{"direct_chwn", Layout::kChwn, DType::kF32, 3, 1, "direct_chwn"},
                                         Asked{"direct_chwn", Layout::kChwn, DType::kF32, 3, 2, "direct_chwn"},
                                         Asked{"reference", Layout::kNchw, DType::kF32, 3, 1, "reference"},
                                         Asked{"reference", Layout::kNhwc, DType::kBf16, 3, 1, "reference"},
                                         Asked{"direct", Layout::kNchw, DType::kF64, 3, 1, "reference"},
                                         Asked{"winograd", Layout::kNhwc, DType::kF32, 3, 2, "direct"},
                                         Asked{"winograd", Layout::kNhwc, DType::kF32, 5, 1, "direct"},
                                         Asked{"winograd", Layout::kNchw, DType::kF32, 3, 1, "winograd_f"},
                                         Asked{"winograd", Layout::kChwn, DType::kBf16, 3, 1, "direct_chwn"},
                                         Asked{"direct_chwn", Layout::kNhwc, DType::kF32, 5, 1, "direct"}));

// Few channels do not pay for Winograd's transforms, nor do few pixels for those of many weights.
TEST(Conv2d, TheDefaultIsWinogradWhereItPays) {
  const auto runs = [](int64_t ic, int64_t oc, Layout layout, int64_t size) {
    const TensorSpec x(Shape{2, ic, size, size}, DType::kF32, layout), w(Shape{oc, ic, 3, 3});
    return prepare<Conv2dForward>(padded(1), {x, w}, {conv2d_output(padded(1), x, w)})->kernel->info().algorithm;
  };
  EXPECT_EQ(runs(64, 64, Layout::kNhwc, 16), "winograd_f4x4");
  EXPECT_EQ(runs(64, 64, Layout::kNhwc, 4), "winograd_f2x2");
  EXPECT_EQ(runs(3, 64, Layout::kNhwc, 16), "direct");
  EXPECT_EQ(runs(64, 64, Layout::kNchw, 16), "winograd_f4x4");
  EXPECT_EQ(runs(3, 64, Layout::kNchw, 16), "direct");
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kChwn}) {
    EXPECT_EQ(runs(512, 256, layout, 2), "im2col");
    EXPECT_NE(runs(512, 256, layout, 4), "im2col");
    EXPECT_NE(runs(64, 64, layout, 2), "im2col");
  }
}

TEST(Conv2d, ConversionsInsideAKernelAreCounted) {
  const TensorSpec x(Shape{2, 32, 8, 8}, DType::kF32, Layout::kNhwc), w(Shape{32, 32, 3, 3});
  const TensorSpec y = conv2d_output(padded(1), x, w);
  {
    const PolicyScope direct(forced("direct"));
    EXPECT_EQ(prepare<Conv2dForward>(padded(1), {x, w}, {y})->kernel->info().conversions, 0);
  }
  const PolicyScope blocked(forced("blocked"));
  const Ref<PreparedKernel> odd =
      prepare<Conv2dForward>(padded(1), {x.with(Layout::kChwn), w}, {y.with(Layout::kChwn)});
  EXPECT_EQ(odd->kernel->info().conversions, 2);  // oneDNN computes nothing on CHWN itself
}

// Both images of each direction are converted, and nothing is where they are as Winograd's kernels have them.
TEST(Conv2d, ConversionsAroundWinogradAreCounted) {
  const PolicyScope winograd(forced("winograd_f2x2"));
  for (const auto& [layout, conversions] : {std::pair{Layout::kNhwc, 0}, {Layout::kNchw, 2}}) {
    const TensorSpec x(Shape{2, 32, 8, 8}, DType::kF32, layout), w(Shape{32, 32, 3, 3});
    for (const Ref<PreparedKernel>& kernel : kernels_of(padded(1), x, w)) {
      EXPECT_EQ(kernel->kernel->info().algorithm, "winograd_f2x2");
      EXPECT_EQ(kernel->kernel->info().conversions, conversions) << kernel->kind->name << " " << to_string(layout);
    }
  }
}

// An im2col product has the pixels of y as its rows, which they are in NHWC, and in NCHW where images are single
// pixels.
TEST(Conv2d, ConversionsInsideAnIm2colAreCounted) {
  const auto conversions = [](int64_t size, Layout layout) {
    const TensorSpec x(Shape{1, 3, size, size}, DType::kF32, layout), w(Shape{5, 3, 3, 3});
    std::vector<int> counted;
    const PolicyScope im2col(forced("im2col"));
    for (const Ref<PreparedKernel>& kernel : kernels_of({}, x, w)) {
      EXPECT_EQ(kernel->kernel->info().algorithm, "im2col");
      counted.push_back(kernel->kernel->info().conversions);
    }
    return counted;
  };
  const std::vector<int> none{0, 0, 0}, one{1, 1, 1};
  EXPECT_EQ(conversions(8, Layout::kNhwc), none);
  EXPECT_EQ(conversions(8, Layout::kNchw), one);
  EXPECT_EQ(conversions(8, Layout::kChwn), one);
  EXPECT_EQ(conversions(3, Layout::kNchw), none);
}

void expect_no_plain_loops(const Conv2dParams& p, const TensorSpec& x, const TensorSpec& w) {
  for (const Ref<PreparedKernel>& kernel : kernels_of(p, x, w)) {
    const KernelInfo& info = kernel->kernel->info();
    const std::string what = message("{} {} {}", kernel->kind->name, to_string(x), to_string(w));
    EXPECT_NE(info.algorithm, "reference") << what;
    EXPECT_EQ(info.name.find("ref"), std::string::npos) << what << " " << info.name;
  }
}

// A slow fallback hides behind an innocent descriptor: no algorithm of oneDNN may be its plain loops, but by name.
TEST(Conv2d, TheDefaultIsNeverAPlainLoop) {
  const bool has_bf16 = cpu_isa().find("avx512f") != std::string::npos;  // without, oneDNN has none
  for (const Layout layout : kPublicLayouts) {
    for (const int64_t channels : {3, 10, 16, 17, 64}) {
      for (const int32_t stride : {1, 2}) {
        for (const int32_t dilation : {1, 2}) {
          const Conv2dParams p{.stride = {stride, stride},
                               .dilation = {dilation, dilation},
                               .padding = {dilation, dilation, dilation, dilation}};
          const TensorSpec x(Shape{4, channels, 9, 9}, DType::kF32, layout), w(Shape{16, channels, 3, 3});
          expect_no_plain_loops(p, x, w);
          if (has_bf16) expect_no_plain_loops(p, x.with(DType::kBf16), w.with(DType::kBf16));
        }
      }
    }
    for (const int64_t of_group : {1, 5, 16, 17}) {
      const Conv2dParams p{.padding = {1, 1, 1, 1}, .groups = 2};
      const TensorSpec x(Shape{4, 2 * of_group, 9, 9}, DType::kF32, layout), w(Shape{16, of_group, 3, 3});
      expect_no_plain_loops(p, x, w);
      if (has_bf16) expect_no_plain_loops(p, x.with(DType::kBf16), w.with(DType::kBf16));
    }
  }
}

// Weights so large that in row-major oneDNN has nothing else for their gradient, with its own formats neither: what is
// offered is never that. Nothing is run here, and no memory is taken.
TEST(Conv2d, PlainLoopsOfOneDnnAreDeclined) {
  const Conv2dParams p{.padding = {3, 3, 3, 3}, .groups = 2};
  const TensorSpec x(Shape{1, 2002, 8, 8}), w(Shape{2002, 1001, 7, 7}), y = conv2d_output(p, x, w);
  for (const DType t : {DType::kF32, DType::kBf16}) {
    for (const char* algorithm : {"", "direct", "blocked", "via_f32_direct", "via_f32_blocked"}) {
      const PolicyScope scope(forced(algorithm));
      const auto kernel = prepare<Conv2dBackwardWeight>(p, {y.with(t), x.with(t)}, {w.with(t)});
      EXPECT_EQ(kernel->kernel->info().name.find("onednn:ref"), std::string::npos) << to_string(t) << " " << algorithm;
    }
  }
}

// The strides of every convolution that runs.
struct StridesSeen : Observer {
  StridesSeen() : scope(this) {}
  void after(const PreparedKernel& p, const Launch&) override {
    if (!std::string_view(p.kind->name).starts_with("conv2d_")) return;
    Conv2dParams params;
    std::memcpy(static_cast<void*>(&params), p.params.data(), sizeof params);
    seen.insert({params.stride[0], params.stride[1]});
  }
  std::set<std::pair<int32_t, int32_t>> seen;
  ObserverScope scope;
};

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
    const PolicyScope scope(forced(algorithm));
    for (const int32_t stride : {3, 4, 2147483647}) {
      SCOPED_TRACE(message("{} stride {}", algorithm, stride));
      const StridesSeen strides;

      const Tensor y = conv2d(x, w, {.stride = {stride, stride}, .padding = {0, 3, 1, 0}});

      ASSERT_EQ(strides.seen, smallest);
      EXPECT_TRUE(test::equal(y, Tensor::from<float>({58}, Shape{1, 1, 1, 1})));
      const TensorList g = grad(y, {x, w}, dy);
      EXPECT_EQ(strides.seen, smallest);
      EXPECT_TRUE(test::equal(g[0], Tensor::from<float>({20, 30, 0, 50, 60, 0}, x.shape())));
      EXPECT_TRUE(test::equal(g[1], Tensor::from<float>({0, 10, 20, 0, 40, 50, 0, 0, 0}, w.shape())));
    }
  }
}

TEST(Conv2d, EmptyBatchesGiveEmptyOutputsAndZeroGradients) {
  for (const Layout layout : kPublicLayouts) {
    const Tensor x = Tensor::empty(TensorSpec(Shape{0, 16, 8, 8}, DType::kF32, layout)).require_grad();
    const Tensor w = test::random_tensor(TensorSpec(Shape{16, 16, 3, 3}), 1).require_grad();
    const Tensor y = conv2d(x, w, padded(1));
    EXPECT_EQ(y.shape(), Shape({0, 16, 8, 8}));
    const TensorList g = grad(y, {x, w}, Tensor::empty(y.spec()));
    EXPECT_TRUE(test::equal(g[1], zeros(w.spec())));
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
