// Reductions against plain loops over every set of dimensions, and what is special about each.
#include "ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "kernels/reduce.h"
#include "kernels/threads.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/permute.h"
#include "ops/random.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

using test::refused;

// The reduction of the row-major elements of a shape over the dimensions in a mask, kept with extent 1.
template <class Combine>
std::vector<double> plain(const std::vector<double>& x, const Shape& shape, uint32_t mask, double start,
                          Combine combine) {
  Shape y = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    if (mask >> d & 1) y = y.with(d, 1);
  }
  std::vector<double> result(static_cast<size_t>(y.numel()), start);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), at = 0, step = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const int64_t index = rest % shape[d];
      rest /= shape[d];
      if (mask >> d & 1) continue;
      at += index * step;
      step *= shape[d];
    }
    combine(result[static_cast<size_t>(at)], x[i]);
  }
  return result;
}

TEST(Reduce, AgreesWithLoopsOverEverySetOfDimensionsInEveryLayout) {
  const Shape shape{3, 5, 4, 7};
  for (const Layout layout : kPublicLayouts) {
    const Tensor x = test::small_integers(TensorSpec(shape, DType::kF64, layout), 3, 1000);
    const std::vector<double> elements = test::to_doubles(x);
    for (uint32_t mask = 1; mask < 16; ++mask) {
      Shape y = shape;
      for (int d = 0; d < 4; ++d) {
        if (mask >> d & 1) y = y.with(d, 1);
      }
      const TensorSpec spec(y, DType::kF64, layout);
      const Tensor total = run<Reduce>({Reduction::kSum, mask}, {x}, spec),
                   largest = run<Reduce>({Reduction::kMax, mask}, {x}, spec);
      EXPECT_EQ(test::to_doubles(total), plain(elements, shape, mask, 0, [](double& a, double v) { a += v; })) << mask;
      EXPECT_EQ(test::to_doubles(largest),
                plain(elements, shape, mask, -1e9, [](double& a, double v) { a = std::max(a, v); }))
          << mask;
    }
  }
}

TEST(Reduce, KeepsOrDropsDimensions) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  EXPECT_TRUE(test::equal(sum(x, {1}), Tensor::from<float>({6, 15}, Shape{2})));
  EXPECT_TRUE(test::equal(sum(x, {-1}, true), Tensor::from<float>({6, 15}, Shape{2, 1})));
  EXPECT_TRUE(test::equal(mean(x, {0}), Tensor::from<float>({2.5, 3.5, 4.5}, Shape{3})));
  EXPECT_EQ(sum(x).shape(), Shape());
  EXPECT_EQ(sum(x).item(), 21);
  EXPECT_EQ(max(x).item(), 6);
  EXPECT_EQ(mean(Tensor::from<float>({7}, Shape{})).item(), 7);
}

TEST(Reduce, LayoutIsKeptWithTheDimensionsAndRowMajorWithout) {
  const Tensor x = test::small_integers(TensorSpec(Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc), 1);
  EXPECT_EQ(sum(x, {1}, true).layout(), Layout::kNhwc);
  EXPECT_EQ(sum(x, {1}).layout(), Layout::kNchw);
  EXPECT_TRUE(test::equal(sum(x, {1}), sum(to(x, Layout::kNchw), {1})));
}

TEST(Reduce, EmptySumsAreZeroAndEmptyMaximaRefused) {
  const Tensor none = Tensor::empty(TensorSpec(Shape{3, 0}));
  EXPECT_TRUE(test::equal(sum(none, {1}), Tensor::from<float>({0, 0, 0}, Shape{3})));
  EXPECT_EQ(sum(none, {0}).shape(), Shape({0}));
  EXPECT_EQ(max(none, {0}).shape(), Shape({0}));
  EXPECT_TRUE(refused([&] { max(none, {1}); }, "max: x (3, 0) has no elements to compare"));
  EXPECT_TRUE(refused([&] { mean(none); }, "mean: x (3, 0) has no elements to average"));
  EXPECT_TRUE(refused([&] { argmax(none); }, "argmax: x (3, 0) has no elements to compare"));
}

// A naive f32 sum of a million tenths is off by a per cent.
TEST(Reduce, LongSumsStayAccurate) {
  const std::vector<float> tenths(1000000, 0.1f);
  const Tensor x = Tensor::from<float>(tenths, TensorSpec(Shape{1000000}));
  EXPECT_NEAR(sum(x).item(), 1e5, 0.1);
  const Tensor columns = Tensor::from<float>(tenths, TensorSpec(Shape{500000, 2}));
  EXPECT_NEAR(sum(columns, {0}).at({1}), 5e4, 0.5);
  const Tensor more = full(Shape{8000000, 4}, 0.1f, DType::kF32);
  EXPECT_NEAR(sum(more, {0}).at({3}), 8e5, 1);
  const Tensor ones = to(Tensor::from<float>(std::vector<float>(4096, 1.0f), TensorSpec(Shape{4096})), DType::kBf16);
  EXPECT_EQ(sum(ones).item(), 4096);  // where bf16 itself cannot count beyond 256
}

// Rows side by side are folded by vectors, and those that are left over one by one: which those are is no thread's
// choice.
TEST(Reduce, TheSignOfAMaximumOfZerosIsTheSameForAnyNumberOfThreads) {
  Tensor x = full(Shape{1500, 32}, -1, DType::kF32);
  for (size_t row = 0; row < 1500; ++row) {
    x.mutable_data<float>()[32 * row + 1] = 0.0f;
    x.mutable_data<float>()[32 * row + 16] = -0.0f;
  }
  const int before = threads();
  set_threads(1);
  const Tensor expected = max(x, {1});
  for (const int n : {2, 3, 7}) {
    set_threads(n);
    EXPECT_TRUE(test::bitwise_equal(max(x, {1}), expected)) << n << " threads";
  }
  set_threads(before);
}

TEST(Reduce, NanWins) {
  for (const size_t place : {size_t{0}, size_t{7}, size_t{99}}) {
    std::vector<float> values(100, 1.0f);
    values[place] = std::numeric_limits<float>::quiet_NaN();
    values[50] = 5;
    const Tensor x = Tensor::from<float>(values, TensorSpec(Shape{100}));
    EXPECT_TRUE(std::isnan(max(x).item()));
    EXPECT_TRUE(std::isnan(sum(x).item()));
    EXPECT_EQ(argmax(x).item(), static_cast<double>(place));
    EXPECT_TRUE(std::isnan(max(Tensor::from<float>(values, TensorSpec(Shape{100, 1})), {0}).item()));
    values.insert(values.end(), values.begin(), values.end());  // one below the other, and side by side
    const Tensor rows = Tensor::from<float>(values, TensorSpec(Shape{2, 100}));
    const auto expected = Tensor::from<int64_t>({static_cast<int64_t>(place), static_cast<int64_t>(place)}, Shape{2});
    EXPECT_TRUE(test::equal(argmax(rows, {1}), expected));
    EXPECT_TRUE(test::equal(argmax(permute(rows, {1, 0}), {0}), expected));
  }
  const Tensor low = Tensor::from<float>({-INFINITY, -INFINITY}, Shape{2});
  EXPECT_EQ(max(low).item(), -INFINITY);
  EXPECT_EQ(argmax(low).item(), 0);
}

// Short runs, longer ones and those that are read from several places at once end in different loops: each element
// counts once.
TEST(Reduce, RunsOfEveryLengthAreReadOnce) {
  const PolicyScope own({.algorithm = algorithm_id("loop")});
  for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) {
    for (const int64_t n : {1, 15, 16, 17, 64, 250, 255, 256, 257, 1000, 8191, 8192, 8200, 8255, 32768, 33000, 98309}) {
      const Tensor counted = full(TensorSpec(Shape{}, DType::kF64), 3 * static_cast<double>(n));
      EXPECT_EQ(sum(full(TensorSpec(Shape{3, n}, t), 1)).item(), to(counted, t).item()) << n;
      for (const int64_t place : {int64_t{0}, n / 4, n / 2, 3 * n / 4, n - 1}) {
        std::vector<double> values(static_cast<size_t>(3 * n));
        values[static_cast<size_t>(n + place)] = 2;
        const Tensor x = test::from_doubles(values, TensorSpec(Shape{3, n}, t));
        EXPECT_EQ(sum(x, {1}).at({1}), 2) << n << " " << place;
        EXPECT_EQ(max(x, {1}).at({1}), 2) << n << " " << place;
        EXPECT_EQ(max(x).item(), 2) << n << " " << place;
        values[static_cast<size_t>(n + place)] = std::numeric_limits<double>::quiet_NaN();
        EXPECT_TRUE(std::isnan(max(test::from_doubles(values, x.spec()), {1}).at({1}))) << n << " " << place;
      }
    }
  }
}

// Many short rows are looked at side by side, as many as fill a vector, and the rest one by one.
TEST(Reduce, ShortRowsSideBySideAreThoseOneByOne) {
  for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) {
    for (const int64_t rows : {1, 15, 16, 17, 50}) {
      for (const int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 256, 257}) {
        std::vector<double> values(static_cast<size_t>(rows * n));
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 7919 + i / 5) % 13) - 20;
        for (size_t i = 5; i < values.size(); i += 97) values[i] = std::numeric_limits<double>::quiet_NaN();
        const Tensor x = test::from_doubles(values, TensorSpec(Shape{rows, n}, t)), first = argmax(x, {1}),
                     largest = max(x, {1});
        for (int64_t r = 0; r < rows; ++r) {
          const double* row = values.data() + r * n;
          int64_t place = 0;
          for (int64_t i = 1; i < n && row[place] == row[place]; ++i) {
            if (row[i] > row[place] || row[i] != row[i]) place = i;
          }
          ASSERT_EQ(first.at({r}), static_cast<double>(place)) << rows << "x" << n << " row " << r;
          ASSERT_EQ(std::isnan(largest.at({r})), std::isnan(row[place])) << rows << "x" << n << " row " << r;
          if (std::isnan(row[place])) continue;
          ASSERT_EQ(largest.at({r}), row[place]) << rows << "x" << n << " row " << r;
        }
      }
    }
  }
}

// Of NCHW images, all but the channels: many short runs, fewer long ones, and more channels than are done side by side.
TEST(Reduce, ImagesAreSweptAsTheyStand) {
  for (const Shape& shape : {Shape{150, 40, 9, 9}, Shape{200, 3, 33, 33}}) {
    const Tensor x = to(uniform(TensorSpec(shape, DType::kI32), -4, 4, 1), DType::kF32), nhwc = to(x, Layout::kNhwc);
    EXPECT_TRUE(test::equal(sum(x, {0, 2, 3}), sum(nhwc, {0, 2, 3})));
    EXPECT_TRUE(test::equal(max(neg(x), {0, 2, 3}), max(neg(nhwc), {0, 2, 3})));
    EXPECT_TRUE(test::equal(mean(to(x, DType::kBf16), {0, 2, 3}), mean(to(nhwc, DType::kBf16), {0, 2, 3})));
  }
}

TEST(Reduce, ArgmaxIsTheFirstOfEqualsInRowMajorOrder) {
  const Tensor x = Tensor::from<float>({1, 9, 9, 3, 9, 2}, Shape{2, 3});
  EXPECT_EQ(argmax(x).item(), 1);
  EXPECT_TRUE(test::equal(argmax(x, {1}), Tensor::from<int64_t>({1, 1}, Shape{2})));
  EXPECT_TRUE(test::equal(argmax(x, {0}, true), Tensor::from<int64_t>({0, 0, 0}, Shape{1, 3})) == false);
  EXPECT_TRUE(test::equal(argmax(x, {0}), Tensor::from<int64_t>({1, 0, 0}, Shape{3})));
  // Element (0, 1, 0, 0) and (0, 0, 0, 1) are equal; in NHWC memory the former stands first.
  const Tensor image =
      test::from_doubles(std::vector<double>{0, 5, 5, 0}, TensorSpec(Shape{1, 2, 1, 2}, DType::kF32, Layout::kNhwc));
  EXPECT_EQ(argmax(image).item(), 1);
  EXPECT_EQ(argmax(Tensor::from<uint8_t>({3, 200, 7}, Shape{3})).item(), 1);
  EXPECT_FALSE(argmax(Tensor::from<float>({1}, Shape{1}).require_grad()).requires_grad());
}

TEST(Expand, IsTheInverseOfSumTo) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, Shape{3, 1});
  const Tensor y = expand(x, TensorSpec(Shape{2, 3, 4}));
  EXPECT_EQ(y.shape(), Shape({2, 3, 4}));
  EXPECT_EQ(y.data<float>()[23], 3);
  EXPECT_TRUE(test::equal(sum_to(y, x.spec()), Tensor::from<float>({8, 16, 24}, Shape{3, 1})));
  EXPECT_EQ(expand(x, x.spec()).value.get(), x.value.get());
  EXPECT_TRUE(refused([&] { expand(x, TensorSpec(Shape{2, 4})); }, "expand: x (3, 1) does not broadcast to (2, 4)"));
  EXPECT_TRUE(refused([&] { expand(y, x.spec()); }, "does not broadcast to (3, 1)"));
  EXPECT_TRUE(refused([&] { expand(x, TensorSpec(Shape{3, 4}, DType::kF64)); }, "convert x with to(dtype)"));
}

TEST(Expand, OneNumberFillsWhatAllThreadsWrite) {
  test::KernelCheck check(1);
  for (const DType t : {DType::kF32, DType::kBf16, DType::kF64}) {
    const Tensor x = test::small_integers({Shape{1}, t}, 1);
    for (const int64_t n : {int64_t{1}, int64_t{100'003}, test::pieces_past_caches(2) + 3}) {
      const Tensor y = expand(x, TensorSpec(Shape{n}, t));
      EXPECT_EQ(y.at({n - 1}), x.at({0})) << n;
    }
  }
}

TEST(Expand, SumToKeepsTheLayoutOfItsRank) {
  const TensorSpec image(Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc);
  const Tensor x = test::small_integers(image, 1);
  EXPECT_EQ(sum_to(x, image.with(Shape{1, 3, 1, 1})).layout(), Layout::kNhwc);
  const Tensor rows = sum_to(x, TensorSpec(Shape{4, 5}));
  EXPECT_EQ(rows.layout(), Layout::kNchw);
  EXPECT_TRUE(test::equal(rows, sum(x, {0, 1})));
}

TEST(Reduce, DimensionsAreOneNumberAListOrASpan) {
  const Tensor x = test::random_tensor({2, 3, 4}, 1);
  const std::vector<int> dims{0, -1};
  EXPECT_TRUE(test::bitwise_equal(sum(x, 1), sum(x, {1})));
  EXPECT_TRUE(test::bitwise_equal(sum(x, dims), sum(x, {0, 2})));
  EXPECT_TRUE(test::bitwise_equal(mean(x, std::span<const int>(dims), true), mean(x, {0, 2}, true)));
  EXPECT_EQ(argmax(x, -1).shape(), Shape({2, 3}));
  EXPECT_TRUE(refused([&] { sum(x, std::vector<int>(7)); }, "7 dimensions were named; a tensor has at most 6"));
  static_assert(!std::is_constructible_v<Dims, bool>);
}

// One over the number of elements is not exact, and their sum times it need not be.
TEST(Reduce, TheMeanOfOnesIsOne) {
  for (int64_t n = 1; n <= 1000; ++n) {
    ASSERT_EQ(mean(ones({n})).item(), 1) << n;
    ASSERT_EQ(mean(ones({n, 3}), 0).at({1}), 1) << n;
  }
  const Tensor x = ones({49}).require_grad();
  EXPECT_EQ(grad(mean(x), {x})[0].at({48}), static_cast<double>(1.0f / 49));
}

}  // namespace
}  // namespace plumb
