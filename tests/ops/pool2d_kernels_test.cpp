// The kernels of pooling beside each other: windows of many kinds, in every layout.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dispatch/policy.h"
#include "ops/grad.h"
#include "ops/pool2d.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

struct Pooling {
  std::string name;
  Shape x;
  Pool2dParams p{};
};

// Windows that tile x, leave a rest, overlap, leave gaps, reach over the edges; widths around a vector.
std::vector<Pooling> poolings() {
  return {
      {"2x2", {3, 5, 8, 8}},
      {"2x2_rest", {2, 17, 9, 7}},
      {"2x2_wide", {1, 3, 6, 70}},
      {"2x2_n64", {64, 3, 4, 4}},
      {"2x2_n250_c33", {250, 33, 2, 2}},
      {"2x2_c130", {2, 130, 4, 6}},
      {"2x2_asymmetric", {3, 10, 5, 5}, {.padding = {0, 1, 0, 1}}},
      {"2x2_asymmetric_even", {2, 17, 6, 40}, {.padding = {1, 0, 1, 0}, .count_include_pad = 0}},
      {"1x2", {2, 3, 3, 33}, {.kernel = {1, 2}, .stride = {1, 2}}},
      {"3x3_stride2", {2, 17, 9, 35}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"3x3_stride2_in_bands", {1, 67, 40, 41}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"2x2_gaps", {2, 35, 11, 10}, {.kernel = 2, .stride = 3}},
      {"3x3_stride2_without_pad", {2, 3, 12, 37}, {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = 0}},
      {"3x3_stride1",
       {33, 4, 6, 20},
       {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}, .count_include_pad = 0}},
      {"2x3_stride3x1", {2, 3, 10, 19}, {.kernel = {2, 3}, .stride = {3, 1}, .padding = {1, 0, 2, 1}}},
      {"3x2_stride1x4", {2, 19, 7, 41}, {.kernel = {3, 2}, .stride = {1, 4}, .padding = {0, 0, 1, 1}}},
      {"5x5_all_edges",
       {2, 3, 3, 3},
       {.kernel = {5, 5}, .stride = {1, 1}, .padding = {2, 2, 2, 2}, .count_include_pad = 0}},
      {"16x17_wide_index", {1, 67, 17, 40}, {.kernel = {16, 17}, .stride = {2, 3}, .padding = {3, 0, 5, 2}}},
      {"1x1", {2, 3, 4, 5}, {.kernel = {1, 1}, .stride = {1, 1}}},
      {"one_pixel", {1, 1, 1, 1}, {.kernel = {1, 1}}},
      {"one_row_1025", {1, 1, 1, 1025}, {.kernel = {1, 3}, .stride = {1, 2}}},
      {"whole", {67, 70, 3, 5}, {.kernel = {3, 5}}},
      {"whole_in_parts", {1, 2051, 2, 4}, {.kernel = {2, 4}}},
      {"whole_but_an_edge", {2, 67, 4, 4}, {.kernel = 4, .padding = {0, 1, 0, 1}}},
      {"whole_wide_index", {1, 3, 23, 17}, {.kernel = {23, 17}}},
      {"no_images", {0, 3, 4, 4}},
      {"no_channels", {3, 0, 4, 4}},
      {"no_channels_of_whole_planes", {3, 0, 4, 4}, {.kernel = 4}},
      {"no_images_of_whole_planes", {0, 3, 4, 4}, {.kernel = 4}},
  };
}

// x in all layouts, f32 and bf16.
template <class Body>
void for_each_input(const Pooling& pooling, const Body& body) {
  SCOPED_TRACE(pooling.name);
  for_each_spec({&pooling.x, 1}, {DType::kF32, DType::kBf16},
                [&](const TensorSpec& s) { body(random_tensor(s, 1).require_grad()); });
}

TEST(Pool2d, EveryKernelMatchesTheReference) {
  for (const Pooling& pooling : poolings()) {
    for_each_input(pooling, [&](const Tensor& x) {
      KernelCheck check(8);
      for (const auto op : {&max_pool2d, &avg_pool2d}) {
        const Tensor y = op(x, pooling.p);
        const Tensor dy = random_tensor(y.spec(), 2).require_grad();
        const Tensor dx = grad(y, {x}, dy, {.create_graph = true})[0];
        grad(dx, {dy}, random_tensor(dx.spec(), 3));  // the gather by index, and the mean
      }
      const NoGrad untaped;
      max_pool2d(x, pooling.p);  // the kernel without an index
      for (const std::string kind : {"max_pool2d_forward", "max_pool2d_backward", "max_pool2d_gather",
                                     "avg_pool2d_forward", "avg_pool2d_backward"}) {
        EXPECT_TRUE(check.checked().contains(kind + ":loop")) << kind;
        EXPECT_TRUE(check.checked().contains(kind + ":reference")) << kind;
        const bool has_planes = x.layout() == Layout::kNchw && pooling.x[0] * pooling.x[1] >= 64;
        EXPECT_TRUE(!has_planes || check.checked().contains(kind + ":planes")) << kind;
      }
      const bool is_whole = pooling.name.starts_with("whole");
      const int64_t lanes = x.layout() == Layout::kNchw ? 1 : pooling.x[x.layout() == Layout::kNhwc ? 1 : 0];
      const bool has_whole = is_whole && (lanes == 1 || lanes > 64);
      // When kernels are measured, positions are 0 and 1: a plane needs both.
      const bool has_positions = pooling.x[2] * pooling.x[3] > 1;
      EXPECT_TRUE(has_positions || !check.checked().contains("max_pool2d_backward:whole"));
      const bool has_whole_backward = is_whole && x.layout() == Layout::kNchw;
      for (const std::string kind : {"max_pool2d", "avg_pool2d"}) {
        EXPECT_TRUE(!has_whole || check.checked().contains(kind + "_forward:whole")) << kind;
        EXPECT_TRUE(!has_whole_backward || check.checked().contains(kind + "_backward:whole")) << kind;
      }
      const bool has_onednn = pooling.x.numel() > 0 && (x.dtype() == DType::kF32 || has_avx512());
      EXPECT_EQ(check.checked().contains("avg_pool2d_forward:onednn"), has_onednn);
    });
  }
}

// What does not stay in the caches is written past them, by way of a stage unless it is of whole lines.
TEST(Pool2d, LargeResultsMatchTheReference) {
  const auto check = [](Layout layout, const Pooling& pooling) {
    SCOPED_TRACE(pooling.name);
    const KernelCheck kernels(8);
    const Tensor x = random_tensor(TensorSpec(pooling.x, DType::kF32, layout), 1).require_grad();
    const Tensor y = max_pool2d(x, pooling.p);
    grad(y, {x}, random_tensor(y.spec(), 2));
  };
  // Twice as much is read and written as a result has that is large by itself.
  const auto pieces = [](int64_t elements) { return pieces_past_caches(elements * 4 / 2); };
  check(Layout::kNchw, {"2x2", {pieces(1030 * (64 + 16)), 1030, 8, 8}});
  check(Layout::kNhwc, {"2x2_rest", {pieces(1033 * (90 + 20)), 1033, 9, 10}});
  check(Layout::kNhwc, {"2x2_whole_lines", {pieces(48 * (90 + 20)), 48, 9, 10}});
  const int64_t channels = pieces(104 * (64 + 16));
  check(Layout::kChwn, {"3x3_stride2", {104, channels, 8, 8}, {.kernel = 3, .stride = 2, .padding = 1}});
}

// Every kernel to the bit, where sums are exact in whatever order.
TEST(Pool2d, SmallIntegersAreExact) {
  KernelCheck check(0);
  for (const Pooling& pooling : poolings()) {
    SCOPED_TRACE(pooling.name);
    for_each_spec({&pooling.x, 1}, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
      const Tensor x = small_integers(s, 1).require_grad();
      const Tensor y = max_pool2d(x, pooling.p);
      grad(y, {x}, small_integers(y.spec(), 2));
      if (pooling.p.kernel == Size2d(2) && pooling.p.count_include_pad) {
        const Tensor mean = avg_pool2d(x, pooling.p);
        grad(mean, {x}, small_integers(mean.spec(), 2));
      }
    });
  }
  for (const char* kind : {"max_pool2d_forward", "max_pool2d_backward", "avg_pool2d_forward", "avg_pool2d_backward"}) {
    EXPECT_TRUE(check.checked().contains(std::string(kind) + ":onednn")) << kind;
  }
}

// Windows of all of a plane, in whatever order its elements are compared: of planes without NaN, with a few, and of
// nothing but -infinity.
TEST(Pool2d, OfAWholePlaneTheFirstOfEqualsAndTheLastNanCount) {
  std::mt19937 engine(3);
  for (const Size2d window : {Size2d(1, 2), Size2d(3, 4), Size2d(5, 4)}) {
    const Shape shape{66, 67, window[0], window[1]};
    std::vector<double> elements(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < elements.size(); ++i) {
      const size_t plane = i / static_cast<size_t>(window[0] * window[1]);
      elements[i] = plane % 3 == 2                        ? -std::numeric_limits<double>::infinity()
                    : plane % 3 == 1 && engine() % 8 == 0 ? std::nan("")
                                                          : static_cast<double>(engine() % 5);
    }
    for_each_spec({&shape, 1}, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
      const Tensor x = from_doubles(elements, s).require_grad();
      const auto pooled = [&](const char* algorithm) {
        const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
        const KernelLog log;
        const Tensor y = max_pool2d(x, {.kernel = window});
        EXPECT_TRUE(log.has(std::string("max_pool2d_forward:") + algorithm));
        return std::pair{y, grad(y, {x}, random_tensor(y.spec(), 2))[0]};
      };
      const auto expected = pooled("reference"), got = pooled("whole");
      EXPECT_TRUE(equal(got.first, expected.first));
      EXPECT_TRUE(equal(got.second, expected.second));
    });
  }
}

// Ours; oneDNN adds in another order in each.
TEST(Pool2d, LayoutsAgreeExactly) {
  const PolicyScope ours({.algorithm = algorithm_id("loop")});
  for (const Pooling& pooling : poolings()) {
    SCOPED_TRACE(pooling.name);
    std::vector<Tensor> first;
    for (const Layout layout : kPublicLayouts) {
      const Tensor x = random_tensor(TensorSpec(pooling.x, DType::kF32, layout), 1).require_grad();
      std::vector<Tensor> results;
      for (const auto op : {&max_pool2d, &avg_pool2d}) {
        const Tensor y = op(x, pooling.p);
        EXPECT_EQ(y.layout(), layout);
        results.push_back(y);
        results.push_back(grad(y, {x}, random_tensor(y.spec(), 2))[0]);
      }
      if (first.empty()) first = results;
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_TRUE(equal(results[i], first[i])) << to_string(layout) << " " << i;
    }
  }
}

TEST(Pool2d, ConvertsNothingInAnyLayout) {
  for (const Pooling& pooling : poolings()) {
    for_each_input(pooling, [&](const Tensor& x) {
      for (const auto op : {&max_pool2d, &avg_pool2d}) {
        const Tensor dy = random_tensor(op(x, pooling.p).spec(), 2);
        std::vector<std::string> ran;
        size_t conversions = 0;
        const AfterEveryKernel watch([&](const PreparedKernel& p, const Launch&) {
          ran.push_back(p.kind->name);
          conversions += static_cast<size_t>(p.kernel->info().conversions) + p.kernel->info().packs.size();
        });
        grad(op(x, pooling.p), {x}, dy);

        const std::string name = op == &max_pool2d ? "max_pool2d" : "avg_pool2d";
        EXPECT_EQ(ran, (std::vector{name + "_forward", name + "_backward"}));
        EXPECT_EQ(conversions, 0u);
      }
    });
  }
}

}  // namespace
}  // namespace plumb::test
