// Which kernel of a convolution runs, and that each computes the same.
#include <gtest/gtest.h>

#include <array>

#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "ops/conv2d.h"
#include "ops/grad.h"
#include "tests/support/kernel_check.h"
#include "tests/support/tensors.h"

namespace plumb {

using detail::Ref;
namespace {

Conv2dParams padded(int32_t by) { return {.padding = {by, by, by, by}}; }
// Forward and both backwards.
std::array<Ref<PreparedKernel>, 3> kernels_of(const Conv2dParams& p, const TensorSpec& x, const TensorSpec& w) {
  const TensorSpec y = conv2d_output(p, x, w);
  return {prepare<Conv2dForward>(p, {x, w}, {y}), prepare<Conv2dBackwardInput>(p, {y, w}, {x}),
          prepare<Conv2dBackwardWeight>(p, {y, x}, {w})};
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
  const PolicyScope scope({.algorithm = algorithm_id(a.algorithm)});
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
                                         Asked{"direct", Layout::kNchw, DType::kF64, 3, 1, "im2col"},
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

// Every kernel on images that begin and end inside of Winograd's tiles, padded on each side by itself.
TEST(Conv2d, EveryKernelTakesEverySideOfThePadding) {
  test::KernelCheck check(8);
  uint64_t seed = 0;
  for (const Padding2d& padding : {Padding2d{1, 0, 1, 1}, {0, 1, 1, 0}, {1, 1, 0, 2}, {2, 1, 1, 0}, {0, 0, 0, 1}}) {
    for (const Shape& shape : {Shape{4, 28, 5, 19}, Shape{2, 16, 20, 8}, Shape{1, 48, 3, 3}}) {
      SCOPED_TRACE(message("{} {}", shape, ++seed));
      const Tensor x = test::random_tensor(TensorSpec(shape, DType::kF32, Layout::kNhwc), seed).require_grad();
      const Tensor w = test::random_tensor(Shape{16, shape[1], 3, 3}, seed).require_grad();
      const Tensor y = conv2d(x, w, {.padding = padding});
      grad(y, {x, w}, test::random_tensor(y.spec(), seed));
    }
  }
}

// Pixels are rows of channels in NHWC, and in NCHW where images are single pixels; with strides or padding they are not
// all.
TEST(Conv2d, WindowsOfOnePixelAreProductsToo) {
  const auto run = [](const Shape& x_shape, Layout layout, DType dtype, const Conv2dParams& p) {
    const Tensor x = test::random_tensor(TensorSpec(x_shape, dtype, layout), 1).require_grad();
    const Tensor w = test::random_tensor(TensorSpec(Shape{17, x_shape[1], 1, 1}, dtype), 2).require_grad();
    const Tensor b = test::random_tensor(TensorSpec(Shape{17}, dtype), 3);
    conv2d(x, w, b, p);
    const Tensor y = conv2d(x, w, p);
    grad(y, {x, w}, test::random_tensor(y.spec(), 4));
  };
  const auto has_products = [](const test::KernelCheck& check, const std::string& algorithm) {
    size_t count = 0;
    for (const char* kind : {"conv2d_forward:", "conv2d_backward_input:", "conv2d_backward_weight:"})
      count += check.checked().contains(kind + algorithm);
    return count;
  };
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const auto& [shape, layout] : {std::pair{Shape{3, 33, 7, 5}, Layout::kNhwc},
                                        {Shape{1, 48, 16, 9}, Layout::kNhwc},
                                        {Shape{9, 20, 1, 1}, Layout::kNchw}}) {
      SCOPED_TRACE(message("{} {}", to_string(dtype), to_string(TensorSpec(shape, dtype, layout))));
      test::KernelCheck check(16);
      run(shape, layout, dtype, {});
      run(shape, layout, dtype, {.activation = Activation::kRelu});
      const std::string how = dtype == DType::kF32 ? "" : "via_f32_";
      for (const char* product : {"gemm", "inner_product"})
        EXPECT_EQ(has_products(check, how + product), 3u) << product;
    }
  }
  for (const auto& [layout, p] : {std::pair{Layout::kNhwc, Conv2dParams{.stride = 2}},
                                  {Layout::kNhwc, Conv2dParams{.padding = 1}},
                                  {Layout::kNchw, Conv2dParams{}},
                                  {Layout::kChwn, Conv2dParams{}}}) {
    test::KernelCheck check(16);
    run({3, 33, 7, 5}, layout, DType::kF32, p);
    EXPECT_EQ(has_products(check, "gemm") + has_products(check, "inner_product"), 0u) << to_string(layout);
  }
}

TEST(Conv2d, ConversionsInsideAKernelAreCounted) {
  const TensorSpec x(Shape{2, 32, 8, 8}, DType::kF32, Layout::kNhwc), w(Shape{32, 32, 3, 3});
  const TensorSpec y = conv2d_output(padded(1), x, w);
  {
    const PolicyScope direct({.algorithm = algorithm_id("direct")});
    EXPECT_EQ(prepare<Conv2dForward>(padded(1), {x, w}, {y})->kernel->info().conversions, 0);
  }
  const PolicyScope blocked({.algorithm = algorithm_id("blocked")});
  const Ref<PreparedKernel> odd =
      prepare<Conv2dForward>(padded(1), {x.with(Layout::kChwn), w}, {y.with(Layout::kChwn)});
  EXPECT_EQ(odd->kernel->info().conversions, 2);  // oneDNN computes nothing on CHWN itself
}

// Both images of each direction are converted, and nothing is where they are as Winograd's kernels have them.
TEST(Conv2d, ConversionsAroundWinogradAreCounted) {
  const PolicyScope winograd({.algorithm = algorithm_id("winograd_f2x2")});
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
    const PolicyScope im2col({.algorithm = algorithm_id("im2col")});
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
  for (const Layout layout : kPublicLayouts) {
    for (const int64_t channels : {3, 10, 16, 17, 64}) {
      for (const int32_t stride : {1, 2}) {
        for (const int32_t dilation : {1, 2}) {
          const Conv2dParams p{.stride = {stride, stride},
                               .dilation = {dilation, dilation},
                               .padding = {dilation, dilation, dilation, dilation}};
          const TensorSpec x(Shape{4, channels, 9, 9}, DType::kF32, layout), w(Shape{16, channels, 3, 3});
          expect_no_plain_loops(p, x, w);
          expect_no_plain_loops(p, x.with(DType::kBf16), w.with(DType::kBf16));
        }
      }
    }
    for (const int64_t of_group : {1, 5, 16, 17}) {
      const Conv2dParams p{.padding = {1, 1, 1, 1}, .groups = 2};
      const TensorSpec x(Shape{4, 2 * of_group, 9, 9}, DType::kF32, layout), w(Shape{16, of_group, 3, 3});
      expect_no_plain_loops(p, x, w);
      expect_no_plain_loops(p, x.with(DType::kBf16), w.with(DType::kBf16));
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
      const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
      const auto kernel = prepare<Conv2dBackwardWeight>(p, {y.with(t), x.with(t)}, {w.with(t)});
      EXPECT_EQ(kernel->kernel->info().name.find("onednn:ref"), std::string::npos) << to_string(t) << " " << algorithm;
    }
  }
}

}  // namespace
}  // namespace plumb
