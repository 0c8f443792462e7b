// What the cases of tests/cases do not say: values known from elsewhere, extreme and non-finite numbers, integers,
// errors.
#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dispatch/policy.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {

namespace math = functors::math;

namespace {

using test::refused;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

double apply(Tensor (*op)(const Tensor&), double x, DType dtype = DType::kF64) {
  return op(test::from_doubles(std::vector<double>{x}, TensorSpec(Shape{}, dtype))).item();
}

struct Known {
  const char* name;
  Tensor (*op)(const Tensor&);
  double (*expected)(double);
};
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
const Known kKnown[] = {
    {"relu", relu, [](double x) { return std::fmax(x, 0.0); }},
    {"sigmoid", sigmoid, logistic},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {"gelu_tanh", gelu_tanh,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {"silu", silu, [](double x) { return x * logistic(x); }},
    {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"square", square, [](double x) { return x * x; }},
    {"abs", abs, [](double x) { return std::fabs(x); }},
    {"neg", neg, [](double x) { return -x; }},
};

TEST(Elementwise, KnownFunctionsHaveTheirValues) {
  for (const Known& k : kKnown) {
    for (double x = -8; x <= 8; x += 0.0625) {
      const double y = k.expected(x);
      EXPECT_NEAR(apply(k.op, x), y, 1e-14 * std::max(1.0, std::abs(y))) << k.name << " of " << x;
      EXPECT_NEAR(apply(k.op, x, DType::kF32), y, 4e-7 * std::max(1.0, std::abs(y)))
          << k.name << " of " << x << " in f32";
    }
  }
  for (const double x : {0.01, 0.5, 1.0, 3.0, 1e10}) {
    EXPECT_NEAR(apply(log, x), std::log(x), 1e-14 * 25);
    EXPECT_EQ(apply(sqrt, x), std::sqrt(x));
    EXPECT_EQ(apply(reciprocal, x), 1 / x);
  }
}

// Of f32's own functions: a few units in the last place over the whole range, not only near 1.
TEST(Elementwise, FloatFunctionsAreAccurateToFewUlp) {
  const auto ulps = [](float got, double expected) {
    const auto rounded = static_cast<float>(expected);
    if (got == rounded) return 0.0;
    const double unit = static_cast<double>(std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity())) -
                        static_cast<double>(std::abs(rounded));
    return std::abs(static_cast<double>(got) - expected) / unit;
  };
  double worst_exp = 0, worst_tanh = 0, worst_log1p = 0, worst_log = 0, worst_erf = 0;
  for (int i = 0; i < 200000; ++i) {
    const float x = -87.0f + 175.5f * static_cast<float>(i) / 200000.0f;
    worst_exp = std::max(worst_exp, ulps(math::exp(x), std::exp(static_cast<double>(x))));
    const float t = x / 8;
    worst_tanh = std::max(worst_tanh, ulps(math::tanh(t), std::tanh(static_cast<double>(t))));
    const float e = x / 16;
    worst_erf = std::max(worst_erf, ulps(math::erf(e), std::erf(static_cast<double>(e))));
    for (const float v : {math::exp(x), x / 1e38f / 100, 1 + x / 1000}) {
      if (v > 0) worst_log = std::max(worst_log, ulps(math::log(v), std::log(static_cast<double>(v))));
    }
    for (const float v : {math::exp(x), -math::exp(-std::abs(x))}) {  // from the smallest numbers to the largest
      if (v > -1.0f) worst_log1p = std::max(worst_log1p, ulps(math::log1p(v), std::log1p(static_cast<double>(v))));
    }
  }
  EXPECT_LT(worst_exp, 2.5);
  EXPECT_LT(worst_tanh, 2.5);
  EXPECT_LT(worst_log1p, 2.5);
  EXPECT_LT(worst_log, 1.5);
  EXPECT_LT(worst_erf, 2.5);
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::tanh(0.0f), 0.0f);
  EXPECT_EQ(math::log1p(0.0f), 0.0f);
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_EQ(math::log(0.0f), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(math::log(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(math::erf(0.0f), 0.0f);
  EXPECT_EQ(math::erf(std::numeric_limits<float>::infinity()), 1.0f);
  EXPECT_EQ(math::erf(-std::numeric_limits<float>::infinity()), -1.0f);
  EXPECT_TRUE(std::isnan(math::erf(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(math::log1p(-1.0f), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(math::log1p(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  for (const float none : {-1.5f, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_TRUE(std::isnan(math::log1p(none)) && std::isnan(math::log(none))) << none;
}

// As exact as erfc where it is small: 1 + erf would have nothing left there.
TEST(Elementwise, FloatNormalCdfKeepsItsTail) {
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); };
  for (int i = 0; i < 200000; ++i) {
    const float x = -13.0f + 26.0f * static_cast<float>(i) / 200000.0f;
    const double v = static_cast<double>(x), y = cdf(v), unit = x < 0 ? (1 + v * v) * y : 1;
    ASSERT_NEAR(static_cast<double>(math::normal_cdf(x)), y, 3e-7 * unit) << x;
    const double z = std::exp(-0.5 * v * v);
    ASSERT_NEAR(static_cast<double>(math::gauss(x)), z, 2e-7 * (1 + v * v) * z) << x;
  }
  constexpr float kEnd = std::numeric_limits<float>::infinity();
  EXPECT_EQ(math::normal_cdf(0.0f), 0.5f);
  EXPECT_EQ(math::gauss(0.0f), 1.0f);
  for (const float far : {14.0f, 1e4f, 1e30f, kEnd}) {
    EXPECT_EQ(math::normal_cdf(far), 1.0f) << far;
    EXPECT_EQ(math::normal_cdf(-far), 0.0f) << far;
    EXPECT_EQ(math::gauss(far), 0.0f) << far;
  }
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(math::normal_cdf(none)) && std::isnan(math::gauss(none)) && std::isnan(math::exp(none)));
  EXPECT_TRUE(std::isnan(math::exp(-none)) && std::isnan(math::softplus(none)));
  const auto y = math::normal_cdf(functors::Dual<double>(0.5, 3.0));
  EXPECT_DOUBLE_EQ(y.v, cdf(0.5));
  EXPECT_NEAR(y.d, 3 * std::exp(-0.125) / std::sqrt(2 * M_PI), 1e-15);
}

TEST(Elementwise, FloatExpHasBothEnds) {
  constexpr float kEnd = std::numeric_limits<float>::infinity();
  for (const float large : {88.8f, 89.5f, 1e4f, 1e30f, kEnd}) EXPECT_EQ(math::exp(large), kEnd) << large;
  for (const float small : {-104.5f, -1e4f, -1e30f, -kEnd}) EXPECT_EQ(math::exp(small), 0.0f) << small;
  for (float x = -103; x < -87; x += 0.37f) {  // denormal numbers
    EXPECT_NEAR(static_cast<double>(math::exp(x)), std::exp(static_cast<double>(x)), 1.5e-45) << x;
  }
}

// What does not stay in the caches is written past them, by way of a stage.
TEST(Elementwise, LargeResultsMatchTheReference) {
  const test::KernelCheck check(4);
  const int64_t rows = test::pieces_past_caches(4101 * 4) + 7;
  const Tensor x = test::random_tensor(TensorSpec(Shape{rows, 4101}), 1);
  relu(x);
  add(x, test::random_tensor(TensorSpec(Shape{rows, 1}), 2));
  mul(x, test::random_tensor(TensorSpec(Shape{4101}), 3));
}

TEST(Elementwise, Log1pOfADualNumberHasItsDerivative) {
  const auto y = math::log1p(functors::Dual<double>(0.5, 3.0));
  EXPECT_DOUBLE_EQ(y.v, std::log1p(0.5));
  EXPECT_DOUBLE_EQ(y.d, 2);  // 3 / (1 + 0.5)
}

// e^x is lost in 1 + e^x from x = -17 on in f32, and its last digits long before.
TEST(Elementwise, SoftplusKeepsItsTail) {
  for (const double x : {-5.0, -20.0, -50.0, -80.0}) {
    const double y = std::log1p(std::exp(x));  // 2.06e-9 of -20
    EXPECT_NEAR(apply(softplus, x, DType::kF32), y, 4e-7 * y) << x;
    EXPECT_NEAR(apply(softplus, x), y, 1e-14 * y) << x;
  }
}

// Its smallest results are no normal numbers: half of the last digit is what they are off by.
TEST(Elementwise, SigmoidKeepsItsTail) {
  const PolicyScope scope({.algorithm = algorithm_id("loop")});
  for (const double x : {-5.0, -50.0, -87.0, -88.0, -95.0, -103.0}) {
    const double y = 1 / (1 + std::exp(-x));
    EXPECT_NEAR(apply(sigmoid, x, DType::kF32), y, 4e-7 * y + 0x1p-150) << x;
  }
}

TEST(Elementwise, ExtremeArgumentsGiveTheLimit) {
  for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) {
    EXPECT_EQ(apply(sigmoid, 1e4, t), 1) << to_string(t);
    EXPECT_EQ(apply(sigmoid, -1e4, t), 0) << to_string(t);
    EXPECT_EQ(apply(tanh, 1e4, t), 1) << to_string(t);
    EXPECT_EQ(apply(tanh, -1e4, t), -1) << to_string(t);
    EXPECT_EQ(apply(exp, -1e4, t), 0) << to_string(t);
    EXPECT_EQ(apply(exp, 1e4, t), kInfinity) << to_string(t);
    for (Tensor (*op)(const Tensor&) : {gelu, gelu_tanh, silu, softplus, relu}) {
      EXPECT_NEAR(apply(op, 1e4, t), 1e4, 32) << to_string(t);  // bf16 has no 10000
      EXPECT_EQ(apply(op, -1e4, t), 0) << to_string(t);
    }
  }
}

TEST(Elementwise, GradientsStayFiniteAtExtremeArguments) {
  for (Tensor (*op)(const Tensor&) : {sigmoid, tanh, gelu, gelu_tanh, silu, softplus, relu}) {
    const Tensor x = Tensor::from<float>({-1e4f, -100, 0, 100, 1e4f}, Shape{5}).require_grad();
    const Tensor gradient = grad(sum(op(x)), {x})[0];
    for (const float g : gradient.data<float>()) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Elementwise, NanStaysNan) {
  for (Tensor (*op)(const Tensor&) :
       {relu, sigmoid, tanh, gelu, gelu_tanh, silu, softplus, exp, log, sqrt, square, reciprocal, abs, neg}) {
    for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) EXPECT_TRUE(std::isnan(apply(op, kNan, t)));
  }
  const Tensor a = Tensor::from<float>({NAN, 1, 2}, Shape{3}), b = Tensor::from<float>({1, NAN, 3}, Shape{3});
  for (const Tensor& y : {maximum(a, b), minimum(a, b), a + b, a * b}) {
    EXPECT_TRUE(std::isnan(y.data<float>()[0]) && std::isnan(y.data<float>()[1]));
    EXPECT_FALSE(std::isnan(y.data<float>()[2]));
  }
}

TEST(Elementwise, OperatorsAreTheOps) {
  const Tensor a = Tensor::from<double>({6}, Shape{}), b = Tensor::from<double>({3}, Shape{});
  EXPECT_EQ((a + b).item(), 9);
  EXPECT_EQ((a - b).item(), 3);
  EXPECT_EQ((a * b).item(), 18);
  EXPECT_EQ((a / b).item(), 2);
  EXPECT_EQ((-a).item(), -6);
  EXPECT_EQ((a * 2).item(), 12);
  EXPECT_EQ((2 * a).item(), 12);
  EXPECT_EQ((a / 4).item(), 1.5);
  EXPECT_EQ((a + 1).item(), 7);
  EXPECT_EQ((a - 1).item(), 5);
  EXPECT_EQ(pow(b, 4).item(), 81);
  EXPECT_EQ(pow(a, b).item(), 216);
  EXPECT_EQ(leaky_relu(-a, 0.5).item(), -3);
}

TEST(Elementwise, IntegersWrapAndDivideByTruncation) {
  const Tensor a = Tensor::from<int32_t>({7, -7, 5, std::numeric_limits<int32_t>::min()}, Shape{4});
  const Tensor b = Tensor::from<int32_t>({2, 2, 0, -1}, Shape{4});
  const auto q = div(a, b);
  EXPECT_EQ(std::vector<int32_t>(q.data<int32_t>().begin(), q.data<int32_t>().end()),
            (std::vector<int32_t>{3, -3, 0, std::numeric_limits<int32_t>::min()}));
  const Tensor bytes = Tensor::from<uint8_t>({250, 10}, Shape{2});
  EXPECT_EQ(add(bytes, bytes).at({0}), 244);
  const Tensor large = Tensor::from<int64_t>({int64_t{1} << 40}, Shape{1});
  EXPECT_EQ(mul(large, Tensor::from<int64_t>({4}, Shape{1})).item(), 0x1p42);
  EXPECT_EQ(maximum(a, b).at({1}), 2);
}

TEST(Elementwise, BroadcastsAlignAtTheRight) {
  const TensorSpec spec = broadcast_spec("add", TensorSpec(Shape{5, 1, 7}), TensorSpec(Shape{2, 1, 6, 1}));
  EXPECT_EQ(spec.shape, Shape({2, 5, 6, 7}));
  EXPECT_EQ(broadcast_spec("add", TensorSpec(Shape{}), TensorSpec(Shape{0})).shape, Shape({0}));
  const TensorSpec image(Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc);
  EXPECT_EQ(broadcast_spec("add", TensorSpec(Shape{5}), image).layout, Layout::kNhwc);
}

TEST(Elementwise, ZeroKeepsItsSignInProducts) {
  const Tensor zeros = Tensor::from({0.0f, -0.0f}, {2}), swapped = Tensor::from({-0.0f, 0.0f}, {2});
  EXPECT_TRUE(test::bitwise_equal(-zeros, swapped));
  EXPECT_TRUE(test::bitwise_equal(zeros * -2, swapped));
  EXPECT_TRUE(test::bitwise_equal(2 * zeros, zeros));
  EXPECT_TRUE(test::bitwise_equal(tanh(zeros), zeros));
}

// Its primitives are kept by the numbers in them, of which 0 and -0 are equal.
TEST(Elementwise, TheVendorsResultsDoNotDependOnWhatRanBefore) {
  const PolicyScope vendor({.search = Search::kMeasured, .kernels = KernelSet::kVendor});
  const Tensor zeros = full({200000}, -0.0, DType::kF32);
  for (const double s : {0.0, -0.0, 0.0}) {
    EXPECT_EQ(std::signbit((zeros - s).at({7})), std::signbit(-0.0 - s)) << s;
    EXPECT_EQ(std::signbit(affine(zeros, 1.5, s).at({7})), std::signbit(-0.0 + s)) << s;
    EXPECT_EQ(std::signbit((zeros * s).at({7})), std::signbit(-0.0 * s)) << s;
    EXPECT_EQ(std::signbit((s / ones_like(zeros)).at({7})), std::signbit(s)) << s;
  }
}

// x times 1 / s rounds twice, and 1 / s may be too large.
TEST(Elementwise, DivisionByANumberIsDivision) {
  for (int i = 1; i <= 1000; ++i) {
    const Tensor x = Tensor::from({static_cast<float>(i)}, {1});
    ASSERT_EQ((x / static_cast<double>(i)).item(), 1) << i;
    ASSERT_EQ((static_cast<double>(i) / x).item(), 1) << i;
  }
  EXPECT_EQ((Tensor::from({0.0f}, {1}) / 1e-40).item(), 0);
  const Tensor x = Tensor::from({4.0, -3.0}, {2}).require_grad();
  EXPECT_TRUE(test::equal(grad(sum(x / 8), {x})[0], Tensor::from({0.125, 0.125}, {2})));
  EXPECT_TRUE(test::equal(grad(sum(6 / x), {x})[0], Tensor::from({-0.375, -6.0 / 9}, {2})));
}

TEST(Elementwise, NumbersStandOnBothSides) {
  const Tensor x = Tensor::from({4.0f, 0.5f}, {2});
  EXPECT_TRUE(test::equal(1 - x, Tensor::from({-3.0f, 0.5f}, {2})));
  EXPECT_TRUE(test::equal(1 + x, Tensor::from({5.0f, 1.5f}, {2})));
  EXPECT_TRUE(test::equal(1 / x, Tensor::from({0.25f, 2.0f}, {2})));
  Tensor y = x;
  y += x;
  y -= 1;
  y *= 2;
  y /= 7;
  EXPECT_TRUE(test::equal(y, Tensor::from({2.0f, 0.0f}, {2})));
  EXPECT_EQ(x.at({0}), 4);  // y is another tensor
}

}  // namespace
}  // namespace plumb
