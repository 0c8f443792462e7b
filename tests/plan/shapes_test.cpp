// Which shapes cuDNN has plans for, beyond those of the networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "app/device_description.h"
#include "core/described.h"
#include "core/print.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/linear.h"
#include "kernels/pool2d.h"
#include "ops/conv2d.h"
#include "ops/pool2d.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

Device h200() {
  static const Device d = describe_device(app::device_description("h200"));
  return d;
}

template <class K>
Candidates candidates(const typename K::Params& params, const std::vector<TensorSpec>& in,
                      const std::vector<TensorSpec>& out, MathMode math = MathMode::kStrict) {
  Candidates all;
  K::cuda({params, in, out, 1, math, h200()}, all);
  return all;
}
// How many deterministic candidates are cuDNN's.
template <class K>
int plans(const typename K::Params& params, const std::vector<TensorSpec>& in, const std::vector<TensorSpec>& out) {
  int n = 0;
  const Candidates offered = candidates<K>(params, in, out);
  for (const auto& c : offered.all()) n += c.algorithm.starts_with("cudnn_") && c.deterministic ? 1 : 0;
  return n;
}
// The numbers of cuDNN's engines among the candidates.
template <class K>
std::set<int> engines(const typename K::Params& params, const std::vector<TensorSpec>& in, const TensorSpec& out) {
  constexpr std::string_view kEngine = "cudnn_e";
  std::set<int> all;
  const Candidates offered = candidates<K>(params, in, {out});
  for (const auto& c : offered.all())
    if (c.algorithm.starts_with(kEngine)) all.insert(std::stoi(c.algorithm.substr(kEngine.size())));
  return all;
}
template <class K>
int plans(const typename K::Params& params, const std::vector<TensorSpec>& in, const TensorSpec& out) {
  return plans<K>(params, in, std::vector<TensorSpec>{out});
}

TEST(PlannedShapesTest, EveryKindOfConvolutionHasAPlan) {
  struct Case {
    const char* name;
    Shape x, w;
    Conv2dParams p;
  };
  const Case cases[] = {
      {"plain", {8, 16, 14, 14}, {32, 16, 3, 3}, {.padding = 1}},
      {"1x1", {8, 16, 14, 14}, {32, 16, 1, 1}, {}},
      {"one pixel", {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {"odd", {3, 7, 15, 13}, {5, 7, 4, 2}, {.stride = {2, 1}}},
      {"strided", {8, 16, 14, 14}, {32, 16, 3, 3}, {.stride = 2, .padding = 1}},
      {"asymmetric", {8, 16, 14, 14}, {32, 16, 3, 3}, {.padding = {0, 1, 2, 1}}},
      {"asymmetric, strided", {8, 16, 14, 14}, {32, 16, 3, 3}, {.stride = 2, .padding = {0, 1, 0, 1}}},
      {"dilated", {8, 16, 14, 14}, {32, 16, 3, 3}, {.dilation = 2, .padding = 2}},
      {"grouped", {8, 16, 14, 14}, {32, 4, 3, 3}, {.padding = 1, .groups = 4}},
      {"depthwise", {8, 16, 14, 14}, {16, 1, 3, 3}, {.padding = 1, .groups = 16}},
      {"grouped, dilated, strided",
       {8, 16, 14, 14},
       {32, 4, 3, 3},
       {.stride = 2, .dilation = 2, .padding = 2, .groups = 4}},
      {"strides past the image", {8, 16, 14, 14}, {32, 16, 3, 3}, {.stride = 2147483647, .padding = 1}},
      {"wide padding", {8, 16, 14, 14}, {32, 16, 3, 3}, {.padding = 4}},
  };
  for (const Case& c : cases) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      for (const Layout layout : kPublicLayouts) {
        const TensorSpec x(c.x, dtype, layout), w(c.w, dtype), b(Shape{c.w[0]}, dtype);
        const TensorSpec y = conv2d_output(c.p, x, w);
        Conv2dParams relu = c.p;
        relu.activation = Activation::kRelu;
        const std::string what = std::string(c.name) + " " + to_string(x);
        EXPECT_GT(plans<Conv2dForward>(c.p, {x, w}, y), 0) << what;
        EXPECT_GT(plans<Conv2dForward>(c.p, {x, w, b}, y), 0) << what << ", bias";
        EXPECT_GT(plans<Conv2dForward>(relu, {x, w, b}, y), 0) << what << ", bias and ReLU";
        EXPECT_GT(plans<Conv2dForward>(relu, {x, w}, y), 0) << what << ", ReLU alone";
        EXPECT_GT(plans<Conv2dBackwardInput>(c.p, {y, w}, x), 0) << what;
        EXPECT_GT(plans<Conv2dBackwardWeight>(c.p, {y, x}, w), 0) << what;
      }
    }
  }
}

// cuDNN's first are compiled at run time, and in f32 some are slow; but in bf16 and TF32 it has narrow ones.
TEST(PlannedShapesTest, OurDepthwiseKernelsComeFirstInF32AndF64) {
  const auto places = [](DType dtype, MathMode math) {
    const TensorSpec x(Shape{8, 16, 14, 14}, dtype), w(Shape{16, 1, 3, 3}, dtype);
    const Conv2dParams p{.padding = 1, .groups = 16};
    std::vector<int64_t> found;
    for (const Candidates& all :
         {candidates<Conv2dForward>(p, {x, w}, {x}, math), candidates<Conv2dBackwardInput>(p, {x, w}, {x}, math),
          candidates<Conv2dBackwardWeight>(p, {x, x}, {w}, math)}) {
      const auto at = std::ranges::find(all.all(), "depthwise", &Candidates::Candidate::algorithm);
      EXPECT_EQ(all.all().back().algorithm, "direct");
      found.push_back(at - all.all().begin());
    }
    return found;
  };
  const std::vector<int64_t> first{0, 0, 0};
  EXPECT_EQ(places(DType::kF32, MathMode::kStrict), first);
  EXPECT_EQ(places(DType::kF64, MathMode::kStrict), first);
  for (const int64_t place : places(DType::kF32, MathMode::kTf32)) EXPECT_GT(place, 0);
  for (const int64_t place : places(DType::kBf16, MathMode::kStrict)) EXPECT_GT(place, 0);
}

TEST(PlannedShapesTest, OtherDtypesAndEmptyTensorsAreLeftToOurKernels) {
  const TensorSpec w(Shape{4, 2, 3, 3}, DType::kF64), x(Shape{2, 2, 9, 9}, DType::kF64);
  EXPECT_EQ(plans<Conv2dForward>({}, {x, w}, conv2d_output({}, x, w)), 0);
  const TensorSpec none(Shape{0, 2, 9, 9}), f32(Shape{4, 2, 3, 3});
  EXPECT_EQ(plans<Conv2dForward>({}, {none, f32}, conv2d_output({}, none, f32)), 0);
}

TEST(PlannedShapesTest, ProductsWithSidesBeyond32BitsAreOurs) {
  const int64_t n = (int64_t{1} << 31) + 64;
  const auto of = [](int64_t rows) {
    const TensorSpec x(Shape{rows, 1}), w(Shape{1, 1});
    std::set<std::string> names;
    const Candidates offered = candidates<LinearForward>({}, {x, w}, {x});
    for (const auto& c : offered.all()) names.insert(c.algorithm);
    return names;
  };
  EXPECT_EQ(of(64), (std::set<std::string>{"cublaslt", "gemm"}));
  EXPECT_EQ(of(n), (std::set<std::string>{"gemm"}));
}

// Those of NHWC are compiled at run time: for f32 there is none of the average's gradient.
TEST(PlannedShapesTest, PoolingHasPlans) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int64_t counts_padding : {0, 1}) {
      for (Pool2dParams p :
           {Pool2dParams{.kernel = 2, .stride = 2}, Pool2dParams{.kernel = 3, .stride = 2, .padding = 1},
            Pool2dParams{.kernel = {3, 2}, .stride = {1, 2}, .padding = {0, 1, 1, 0}}}) {
        p.count_include_pad = counts_padding;
        const TensorSpec x(Shape{8, 16, 14, 15}, dtype);
        const TensorSpec y = pool2d_output("pool2d", p, x);
        EXPECT_GT(plans<MaxPool2dForward>(p, {x}, y), 0);
        // Of averages not what is known to be wrong.
        EXPECT_EQ(plans<AvgPool2dForward>(p, {x}, y) > 0, p.padding.is_even());
        const TensorSpec last = x.with(Layout::kNhwc), y_last = y.with(Layout::kNhwc);
        EXPECT_GT(plans<MaxPool2dForward>(p, {last}, y_last), 0);
        EXPECT_GT(plans<AvgPool2dForward>(p, {last}, y_last), 0);
      }
    }
  }
}

// What a GPU found wrong passes the library's support checks, here as there.
TEST(PlannedShapesTest, EnginesThatAreKnownToBeWrongAreLeftOut) {
  const auto by_weights = [](const Conv2dParams& p, DType dtype) {
    const TensorSpec x(Shape{8, 16, 14, 14}, dtype), w(Shape{32, 16, 3, 3}, dtype);
    return engines<Conv2dBackwardWeight>(p, {conv2d_output(p, x, w), x}, w);
  };
  const std::set<int> even = by_weights({.padding = 1}, DType::kF32),
                      uneven = by_weights({.padding = {0, 1, 0, 1}}, DType::kF32);
  EXPECT_TRUE(even.contains(1) && even.contains(20));
  EXPECT_FALSE(uneven.empty() || uneven.contains(1) || uneven.contains(20));
  EXPECT_FALSE(by_weights({.padding = 1}, DType::kBf16).contains(70));
  const TensorSpec x(Shape{8, 16, 14, 14}, DType::kBf16), w(Shape{32, 16, 3, 3}, DType::kBf16);
  const Conv2dParams same{.padding = 1};
  EXPECT_FALSE(engines<Conv2dBackwardInput>(same, {conv2d_output(same, x, w), w}, x).contains(78));
  const auto by_depthwise_weights = [&](DType dtype) {
    const TensorSpec wide(Shape{8, 16, 14, 14}, dtype), each(Shape{16, 1, 3, 3}, dtype);
    const Conv2dParams p{.padding = 1, .groups = 16};
    return engines<Conv2dBackwardWeight>(p, {conv2d_output(p, wide, each), wide}, each);
  };
  EXPECT_FALSE(by_depthwise_weights(DType::kF32).contains(18));
  EXPECT_FALSE(by_depthwise_weights(DType::kBf16).contains(47));
  const Pool2dParams pool{.kernel = 2, .stride = 2};
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const TensorSpec last(Shape{8, 16, 14, 14}, dtype, Layout::kNhwc), y = pool2d_output("pool2d", pool, last);
    EXPECT_EQ(engines<MaxPool2dForward>(pool, {last}, y).contains(3), dtype == DType::kF32);
    EXPECT_EQ(engines<AvgPool2dForward>(pool, {last}, y).contains(3), dtype == DType::kF32);
  }
}

TEST(PlannedShapesTest, BatchNormalisationHasPlansForChannelsInPieces) {
  const BatchNormParams train;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const Layout layout : kPublicLayouts) {
      for (const int64_t channels : {64, 66}) {
        const TensorSpec x(Shape{8, channels, 14, 14}, dtype, layout), c(Shape{channels}, DType::kF32);
        const bool has = channels == 64 && layout != Layout::kChwn;
        EXPECT_EQ(plans<BatchNormForward>(train, {x, c, c, c, c}, {x, c, c}) > 0, has) << x;
        EXPECT_EQ(plans<BatchNormBackward>(train, {x, x, c, c, c}, {c, c, x}) > 0, has) << x;
      }
    }
  }
  BatchNormParams inference;
  inference.train = 0;
  const TensorSpec x(Shape{8, 64, 14, 14}), c(Shape{64});
  EXPECT_EQ(plans<BatchNormForward>(inference, {x, c, c, c, c}, {x}), 0);
}

TEST(PlannedShapesTest, BatchNormalisationIsPlannedAndRun) {
  const DeviceScope on(h200());
  const PolicyScope cudnn({.algorithm = register_algorithm("cudnn")});
  const TensorSpec x(Shape{8, 64, 14, 14}, DType::kF32, Layout::kNhwc), c(Shape{64});
  const auto forward = prepare<BatchNormForward>({}, {x, c, c, c, c}, {x, c, c});
  EXPECT_TRUE(forward->kernel->info().name.starts_with("cudnn:")) << forward->kernel->info().name;
  const auto backward = prepare<BatchNormBackward>({}, {x, x, c, c, c}, {c, c, x});
  EXPECT_TRUE(backward->kernel->info().name.starts_with("cudnn:")) << backward->kernel->info().name;
}

// cuDNN's plans take a ReLU, and a sum before one. A sum alone is ours, behind it, as is what comes before a gradient,
// so that the vendor's rows have them, too.
TEST(PlannedShapesTest, BatchNormalisationByCudnnHasWhatIsAddedAndAReluWithinOrBehindIt) {
  const DeviceScope on(h200());
  const PolicyScope cudnn({.algorithm = register_algorithm("cudnn")});
  const TensorSpec x(Shape{8, 64, 14, 14}, DType::kBf16, Layout::kNhwc), c(Shape{64});
  const auto plain = prepare<BatchNormForward>({}, {x, c, c, c, c}, {x, c, c});
  const auto relu = prepare<BatchNormForward>({.activation = Activation::kRelu}, {x, c, c, c, c}, {x, c, c});
  const auto both = prepare<BatchNormForward>({.activation = Activation::kRelu}, {x, c, c, c, c, x}, {x, c, c});
  const auto sum = prepare<BatchNormForward>({}, {x, c, c, c, c, x}, {x, c, c});
  for (const auto& within : {relu, both}) {
    EXPECT_TRUE(within->kernel->info().name.starts_with("cudnn:")) << within->kernel->info().name;
    EXPECT_EQ(within->kernel->info().name.find('+'), std::string::npos) << within->kernel->info().name;
    EXPECT_EQ(within->kernel->info().launches, plain->kernel->info().launches);
  }
  EXPECT_EQ(sum->kernel->info().name, plain->kernel->info().name + "+add");
  EXPECT_EQ(sum->kernel->info().launches, plain->kernel->info().launches + 1);
  const auto gradient = prepare<BatchNormBackward>({}, {x, x, c, c, c}, {c, c, x});
  const auto behind = prepare<BatchNormBackward>({.activation = Activation::kRelu}, {x, x, c, c, c, c}, {c, c, x});
  EXPECT_EQ(behind->kernel->info().name, gradient->kernel->info().name + "+relu_backward");
  EXPECT_GE(behind->kernel->info().workspace_bytes, gradient->kernel->info().workspace_bytes + x.bytes());
}

TEST(PlannedShapesTest, PlansThatNeedTooMuchMemoryAreLeftOut) {
  std::string text = app::device_description("h200");
  const std::string memory = "\"totalGlobalMem\": 150754820096";
  ASSERT_NE(text.find(memory), std::string::npos);
  text.replace(text.find(memory), memory.size(), "\"totalGlobalMem\": 67108864");
  const TensorSpec x(Shape{8, 64, 56, 56}, DType::kF32, Layout::kNhwc), w(Shape{64, 64, 3, 3});
  const Conv2dParams p{.padding = 1};
  const auto workspace = [&](Device d) {
    const DeviceScope on(d);
    return prepare<Conv2dForward>(p, {x, w}, {conv2d_output(p, x, w)})->kernel->info().workspace_bytes;
  };
  EXPECT_GT(workspace(h200()), size_t{8} << 20);
  EXPECT_LE(workspace(describe_device(text)), size_t{8} << 20);
}

// With zeros in the place of the bias that the plan wants.
TEST(PlannedShapesTest, ReluWithoutBiasRuns) {
  const DeviceScope on(h200());
  const Tensor x = Tensor::empty(TensorSpec(Shape{8, 16, 14, 14}), MemoryClass::kInput, h200());
  const Tensor w = Tensor::empty(TensorSpec(Shape{32, 16, 3, 3}), MemoryClass::kParameter, h200());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(conv2d(x, w, {.activation = Activation::kRelu}).shape(), (Shape{8, 32, 12, 12}));
}

}  // namespace
}  // namespace plumb
