// What pooling means: numbers worked out by hand, the shape rule, errors. Its kernels: pool2d_kernels_test.cpp.
#include "ops/pool2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dispatch/policy.h"
#include "ops/convert.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x = 1 5 2   windows of 2x2, one apart:   5 5   of which the 5 is at 1 and 0, and 8 at 2 (below left)
//     3 4 4                                8 4   and 4 in the last window at 0, being the first of two.
//     8 0 4
TEST(MaxPool2d, TheGradientGoesToTheFirstOfEqualMaxima) {
  const Tensor x = Tensor::from<float>({1, 5, 2, 3, 4, 4, 8, 0, 4}, Shape{1, 1, 3, 3}).require_grad();
  const Tensor y = max_pool2d(x, {.stride = {1, 1}});
  const Tensor dx = grad(y, {x}, Tensor::from<float>({1, 10, 100, 1000}, Shape{1, 1, 2, 2}))[0];

  EXPECT_TRUE(equal(y, Tensor::from<float>({5, 5, 8, 4}, Shape{1, 1, 2, 2})));
  EXPECT_TRUE(equal(dx, Tensor::from<float>({0, 11, 0, 0, 1000, 0, 100, 0, 0}, Shape{1, 1, 3, 3})));
}

// Both ours and oneDNN's.
TEST(MaxPool2d, PaddingNeverWinsAndNanAlwaysDoes) {
  const double nan = std::nan("");
  for (const char* algorithm : {"loop", "onednn"}) {
    const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBf16}) {
      for (const Layout layout : kPublicLayouts) {
        const auto make = [&](std::vector<double> v, const Shape& s) {
          return from_doubles(v, TensorSpec(s, dtype, layout));
        };
        const Tensor x = make({-3, -kInfinity, nan, 7}, {1, 1, 1, 4}).require_grad();
        const Tensor y = max_pool2d(x, {.kernel = {2, 2}, .stride = {1, 2}, .padding = {1, 1, 1, 1}});
        const std::vector<double> values = to_doubles(y);
        const Tensor dx = grad(y, {x}, make({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3}))[0];

        EXPECT_EQ(values[0], -3);
        EXPECT_TRUE(std::isnan(values[1])) << "between -infinity and NaN";
        EXPECT_EQ(values[2], 7);
        EXPECT_EQ(to_doubles(dx), (std::vector<double>{5, 0, 7, 9}));
      }
    }
  }
}

TEST(MaxPool2d, AWindowOfNothingButTheLeastHasAPositionInsideX) {
  for (const double least : {-kInfinity, static_cast<double>(std::numeric_limits<float>::lowest())}) {
    for (const char* algorithm : {"loop", "onednn"}) {
      const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
      const Tensor x = from_doubles(std::vector<double>(4, least), Shape{1, 1, 2, 2}).require_grad();
      const Tensor y = max_pool2d(x, {.kernel = {2, 2}, .padding = {1, 1, 1, 1}});
      EXPECT_EQ(to_doubles(y), std::vector<double>(4, least));
      EXPECT_EQ(to_doubles(grad(y, {x}, Tensor::from<float>({1, 2, 3, 4}, Shape{1, 1, 2, 2}))[0]),
                (std::vector<double>{1, 2, 3, 4}))
          << algorithm << " " << least;
    }
  }
}

TEST(MaxPool2d, PositionsAreKeptOnlyForAGradientAndInBytes) {
  const auto outputs = [](const Tensor& x, const Pool2dParams& p) {
    std::vector<DType> dtypes;  // of the outputs of every kernel that runs
    const AfterEveryKernel watch([&](const PreparedKernel& k, const Launch&) {
      for (const TensorSpec& s : k.out()) dtypes.push_back(s.dtype);
    });
    max_pool2d(x, p);
    return dtypes;
  };
  const Tensor x = random_tensor(Shape{1, 1, 20, 20}, 1), wanted = x.detached().require_grad();
  EXPECT_EQ(outputs(x, {}), (std::vector{DType::kF32}));
  EXPECT_EQ(outputs(wanted, {}), (std::vector{DType::kF32, DType::kU8}));
  EXPECT_EQ(outputs(wanted, {.kernel = {15, 17}, .stride = 2}), (std::vector{DType::kF32, DType::kU8}));
  EXPECT_EQ(outputs(wanted, {.kernel = 16, .stride = 2}), (std::vector{DType::kF32, DType::kI32}));
  const NoGrad untaped;
  EXPECT_EQ(outputs(wanted, {}), (std::vector{DType::kF32}));
}

// x = 1 2   below and right a row and a column of zeros: the window at the corner has one element of x.
//     3 4
TEST(AvgPool2d, PaddingCountsInTheDivisorIfAskedTo) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, Shape{1, 1, 2, 2});
  const Pool2dParams whole{.stride = {1, 1}, .padding = {0, 1, 0, 1}},
      inside{.stride = {1, 1}, .padding = {0, 1, 0, 1}, .count_include_pad = 0};
  EXPECT_EQ(to_doubles(avg_pool2d(x, whole)), (std::vector<double>{2.5, 1.5, 1.75, 1}));
  EXPECT_EQ(to_doubles(avg_pool2d(x, inside)), (std::vector<double>{2.5, 3, 3.5, 4}));
}

TEST(GlobalAvgPool2d, IsTheMeanOfEachChannel) {
  for (const Layout layout : kPublicLayouts) {
    const Tensor x = from_doubles(std::vector<double>{1, 2, 3, 6, 10, 20, 30, 60},
                                  TensorSpec(Shape{1, 2, 2, 2}, DType::kF32, layout))
                         .require_grad();
    const Tensor y = global_avg_pool2d(x);

    EXPECT_EQ(y.spec(), TensorSpec(Shape({1, 2, 1, 1}), DType::kF32, layout));
    EXPECT_EQ(to_doubles(y), (std::vector<double>{3, 30}));
    EXPECT_EQ(to_doubles(grad(sum(y), {x})[0]), std::vector<double>(8, 0.25));
  }
}

TEST(Pool2d, TheShapeRuleRoundsDown) {
  const auto y = [](const Pool2dParams& p, const Shape& x) {
    return to_string(pool2d_output("max_pool2d", p, x).shape);
  };
  EXPECT_EQ(y({}, {2, 3, 17, 16}), "(2, 3, 8, 8)");
  EXPECT_EQ(y({.kernel = 3, .stride = 2, .padding = {0, 1, 0, 1}}, {2, 3, 8, 8}), "(2, 3, 4, 4)");
  EXPECT_EQ(y({.kernel = {3, 1}, .stride = {1, 5}, .padding = {2, 1, 0, 0}}, {1, 1, 1, 11}), "(1, 1, 2, 3)");
}

// What a kernel prepares is of the image's size.
TEST(Pool2d, WindowsMayBeAsLargeAsTheirPadding) {
  constexpr int32_t kHuge = 2147483647;
  const Tensor x = test::small_integers(TensorSpec(Shape{1, 1, 5, 6}), 1);
  const Pool2dParams p{.kernel = {kHuge, 1}, .stride = {kHuge, 1}, .padding = {kHuge - 1, kHuge - 1, 0, 0}};
  const Tensor y = max_pool2d(x, p), mean = avg_pool2d(x, p);
  ASSERT_EQ(y.shape(), Shape({1, 1, 2, 6}));
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(y.data<float>()[i], x.data<float>()[i]);  // the window ends in the first row
  EXPECT_EQ(mean.shape(), y.shape());

  const Tensor wide = to(x, DType::kF64).require_grad();
  const Tensor dx = grad(sum(max_pool2d(wide, p)), {wide})[0], d_mean = grad(sum(avg_pool2d(wide, p)), {wide})[0];
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(dx.data<double>()[i], 1);
  EXPECT_EQ(sum(dx).item(), 12);  // the other window sees the other rows
  for (const double d : d_mean.data<double>()) EXPECT_EQ(d, 1.0 / kHuge);
}

// Their gradients take the time of the image, not of the stride.
TEST(Pool2d, StridesMayBeLargerThanTheImage) {
  constexpr int32_t kHuge = 2147483647;
  const Tensor x = test::small_integers(TensorSpec(Shape{1, 1, 64, 64}), 1).require_grad();
  const auto same = [&](const Pool2dParams& huge, const Pool2dParams& small) {
    for (const auto pool : {max_pool2d, avg_pool2d}) {
      const Tensor a = pool(x, huge), b = pool(x, small);
      EXPECT_TRUE(test::equal(a, b));
      EXPECT_TRUE(test::equal(grad(sum(a), {x})[0], grad(sum(b), {x})[0]));
    }
  };
  same({.kernel = 2, .stride = {2, kHuge}}, {.kernel = 2, .stride = {2, 64}});
  same({.kernel = {1, 66}, .stride = {1, 1 << 28}, .padding = {0, 0, 65, 65}},
       {.kernel = {1, 66}, .stride = {1, 129}, .padding = {0, 0, 65, 65}});
  // A window ends in the first column, and one begins in the last.
  const auto two = [](int32_t kernel) {
    return Pool2dParams{.kernel = {1, kernel},
                        .stride = {1, kernel + 62},
                        .padding = {0, 0, kernel - 1, kernel - 1},
                        .count_include_pad = 0};
  };
  same(two(1 << 28), two(64));
}

TEST(Pool2d, TheStrideIsTheKernelUnlessGiven) {
  const TensorSpec x({1, 1, 9, 9});
  const auto y = [&](const Pool2dParams& p) { return pool2d_output("max_pool2d", p, x).shape; };
  EXPECT_EQ(y({}), Shape({1, 1, 4, 4}));
  EXPECT_EQ(y({.kernel = 3}), Shape({1, 1, 3, 3}));
  EXPECT_EQ(y({.kernel = {3, 1}}), Shape({1, 1, 3, 9}));
  EXPECT_EQ(y({.kernel = 3, .stride = 2, .padding = 1}), Shape({1, 1, 5, 5}));
  const Tensor images = random_tensor(x, 1).require_grad();
  EXPECT_EQ(max_pool2d(images, {.kernel = 3}).shape(), Shape({1, 1, 3, 3}));
  EXPECT_EQ(grad(avg_pool2d(images, {.kernel = 3}), {images}, ones({1, 1, 3, 3}))[0].at({0, 0, 4, 4}),
            static_cast<double>(1.0f / 9));
}

// Adding on and on, a sum of a million tenths would be off by a per cent.
TEST(AvgPool2d, LargeWindowsStayAccurate) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    for (const int64_t channels : {2, 65}) {
      const Tensor x = to(full(Shape{1, channels, 600, 601}, 0.1, DType::kF32), layout);
      for (const Size2d& kernel : {Size2d{600, 601}, Size2d{600, 600}, Size2d{599, 400}}) {
        SCOPED_TRACE(message("{}, {} channels, {}x{}", layout, channels, kernel[0], kernel[1]));
        EXPECT_NEAR(avg_pool2d(x, {.kernel = kernel, .stride = {600, 600}}).at({0, 1, 0, 0}), 0.1, 1e-5);
      }
    }
  }
}

TEST(AvgPool2d, WindowsOfOneLongRowStayAccurate) {
  for (const Layout layout : kPublicLayouts) {
    const Tensor x = to(full(Shape{1, 16, 1, 2 * 65536}, 0.1, DType::kF32), layout);
    EXPECT_NEAR(avg_pool2d(x, {.kernel = {1, 65536}}).at({0, 3, 0, 1}), 0.1, 5e-6) << to_string(layout);
  }
}

TEST(Pool2d, TheMeanOfOnesIsOne) {
  for (int32_t k = 1; k <= 15; ++k) {
    for (const Layout layout : kPublicLayouts) {
      const Tensor x = to(ones({1, 2, k, k}), layout);
      ASSERT_EQ(avg_pool2d(x, {.kernel = k}).at({0, 1, 0, 0}), 1) << k;
    }
  }
}

}  // namespace
}  // namespace plumb::test
