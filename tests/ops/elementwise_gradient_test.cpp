// Gradients of elementwise ops where a formula alone does not tell, and what runs for them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

using test::refused;
using Function = std::function<Tensor(const Tensor&)>;

// The gradient of a is dy itself, and that of b is dy with the other sign: none looks at the operands.
TEST(ElementwiseGradient, TheGradientsOfADifferenceAreDyAndItsNegative) {
  const Tensor a = test::random_tensor(TensorSpec(Shape{2, 3}), 1).require_grad(),
               b = test::random_tensor(TensorSpec(Shape{3}), 2).require_grad();
  const Tensor dy = Tensor::from<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  {
    const Tensor y = a - dy;
    test::KernelLog log;
    EXPECT_EQ(grad(y, {a}, dy)[0].value.get(), dy.value.get());
    EXPECT_EQ(log.ran, std::vector<std::string>{});
  }
  const Tensor y = a - b;
  test::KernelLog log;
  const TensorList g = grad(y, {a, b}, dy);
  EXPECT_EQ(log.ran, (std::vector<std::string>{"reduce:loop", "affine:loop"}));
  EXPECT_TRUE(test::equal(g[0], dy));
  EXPECT_TRUE(test::equal(g[1], Tensor::from<float>({-5, -7, -9}, Shape{3})));
}

TEST(ElementwiseGradient, ThirdDerivativesAreRefusedAndNotSilentlyZero) {
  const GradOptions graph{.create_graph = true};
  const Tensor x = Tensor::from<double>({0.5}, Shape{1}).require_grad(),
               y = Tensor::from<double>({2}, Shape{1}).require_grad();
  const Tensor first = grad(sum(sigmoid(x)), {x}, graph)[0];
  const Tensor second = grad(sum(first), {x}, graph)[0];
  EXPECT_TRUE(refused([&] { grad(sum(second), {x}); }, "sigmoid: derivatives beyond the second are not available"));
  const Tensor by_x = grad(sum(div(x, y)), {x}, graph)[0];
  const Tensor mixed = grad(sum(by_x), {y}, graph)[0];
  EXPECT_NEAR(mixed.item(), -0.25, 1e-15);  // d2 (x / y) = -1 / y^2
  EXPECT_TRUE(refused([&] { grad(sum(mixed), {y}); }, "div: derivatives beyond the second are not available"));
}

TEST(ElementwiseGradient, AProductOfTheHessianHasAGradientOfWhatItIsWith) {
  const GradOptions graph{.create_graph = true};
  const Tensor x = Tensor::from<double>({0.5}, Shape{1}).require_grad(),
               u = Tensor::from<double>({2}, Shape{1}).require_grad();
  const Tensor first = grad(sum(tanh(x)), {x}, graph)[0];
  const Tensor product = grad(first, {x}, u, graph)[0];
  const double t = std::tanh(0.5);
  EXPECT_NEAR(grad(sum(product) + sum(u * u), {u})[0].item(), -2 * t * (1 - t * t) + 4, 1e-14);
}

TEST(ElementwiseGradient, OfAMultipleNothingIsKept) {
  const Tensor x = Tensor::from<double>({0.5}, Shape{1}).require_grad();
  Tensor u = Tensor::from<double>({2}, Shape{1}).require_grad();
  const Tensor g = grad(x * 3, {x}, u, {.create_graph = true})[0];
  {
    const NoGrad no_grad;
    u.copy_from(Tensor::from<double>({7}, Shape{1}));
  }
  EXPECT_EQ(grad(sum(g), {u})[0].item(), 3);
}

TEST(ElementwiseGradient, EqualOperandsOfAMaximumShareTheGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = Tensor::from({1.0f, 2.0f, 0.0f, nan, 4.0f, nan}, {6}).require_grad(),
               b = Tensor::from({2.0f, 1.0f, -0.0f, 3.0f, nan, nan}, {6}).require_grad();
  const Tensor dy = Tensor::from({3.0f, 3.0f, 3.0f, 3.0f, 3.0f, 3.0f}, {6});
  const TensorList larger = grad(maximum(a, b), {a, b}, dy), smaller = grad(minimum(a, b), {a, b}, dy);
  EXPECT_TRUE(test::equal(larger[0], Tensor::from({0.0f, 3.0f, 1.5f, 3.0f, 0.0f, 3.0f}, {6})));
  EXPECT_TRUE(test::equal(larger[1], Tensor::from({3.0f, 0.0f, 1.5f, 0.0f, 3.0f, 3.0f}, {6})));
  EXPECT_TRUE(test::equal(smaller[0], Tensor::from({3.0f, 0.0f, 1.5f, 3.0f, 0.0f, 3.0f}, {6})));
  EXPECT_TRUE(test::equal(smaller[1], Tensor::from({0.0f, 3.0f, 1.5f, 0.0f, 3.0f, 3.0f}, {6})));
}

// d2 a^b / da db = a^(b - 1) (1 + b log a), which is 1 / a at b = 0, from both sides.
TEST(ElementwiseGradient, MixedDerivativesOfAPowerAtExponentZero) {
  const GradOptions graph{.create_graph = true};
  const Tensor a = Tensor::from({0.5, 4.0, 0.0}, {3}).require_grad(),
               b = Tensor::from({0.0, 0.0, 0.0}, {3}).require_grad();
  const Tensor by_a = grad(sum(pow(a, b)), {a}, graph)[0], by_b = grad(sum(pow(a, b)), {b}, graph)[0];
  EXPECT_TRUE(test::equal(by_a, Tensor::from({0.0, 0.0, 0.0}, {3})));
  EXPECT_TRUE(test::equal(grad(sum(by_a), {b})[0], Tensor::from({2.0, 0.25, 0.0}, {3})));
  EXPECT_TRUE(test::equal(grad(sum(by_b), {a})[0], Tensor::from({2.0, 0.25, 0.0}, {3})));
}

// The derivative by one operand has a factor of infinity that the other's does not vary with.
TEST(ElementwiseGradient, SecondDerivativesAreNumbersBesideInfinity) {
  const GradOptions graph{.create_graph = true};
  const auto second = [&](const Tensor& y, const Tensor& by, const Tensor& then) {
    const Tensor first = grad(sum(y), {by}, graph)[0];
    return grad(sum(first), {then})[0].item();
  };
  const auto scalar = [](float v) { return Tensor::from({v}, {1}).require_grad(); };
  const Tensor zero = scalar(0), small = scalar(1e-30f), half = scalar(0.5f), b = scalar(1.5f), low = scalar(-0.3f);
  EXPECT_EQ(second(pow(zero, b), zero, b), 0);
  const double log_small = std::log(1e-30), by_half = std::pow(1e-30, -0.5) * (1 + 0.5 * log_small);
  EXPECT_NEAR(second(pow(small, half), small, half) / by_half, 1, 1e-5);
  EXPECT_NEAR(second(pow(small, low), low, low) / (std::pow(1e-30, -0.3) * log_small * log_small), 1, 1e-4);
  const Tensor one = scalar(1);
  EXPECT_EQ(second(one / zero, one, one), 0);
  const Tensor huge = scalar(1e20f);
  EXPECT_EQ(second(gelu_tanh(huge), huge, huge), 0);
}

TEST(ElementwiseGradient, ANanBelowAnExponentIsOneInItsGradient) {
  const Tensor a = Tensor::from({std::nan(""), -1.0}, {2}), b = Tensor::from({2.0, 2.0}, {2}).require_grad();
  const Tensor by_b = grad(sum(pow(a, b)), {b}, {.create_graph = true})[0];
  EXPECT_TRUE(std::isnan(by_b.at({0})));
  EXPECT_EQ(by_b.at({1}), 0);
  EXPECT_TRUE(std::isnan(grad(sum(by_b), {b})[0].at({0})));
}

// dy / b alone is infinite or b b zero, where the gradient is a number.
TEST(ElementwiseGradient, OfAQuotientIsANumberWhereItsFactorsAreNone) {
  const Tensor a = Tensor::from({0.0f, 0.0f, 1e-30f, 1.0f}, {4}),
               b = Tensor::from({1e-30f, 1e-35f, 1e-10f, 1e-20f}, {4}).require_grad(),
               dy = Tensor::from({1e10f, 1e5f, 1e30f, 0.0f}, {4});
  EXPECT_TRUE(test::close(grad(a / b, {b}, dy)[0], Tensor::from({0.0f, 0.0f, -1e20f, 0.0f}, {4}), 1e-6));
  const Tensor x = Tensor::from({1e-10f}, {1}).require_grad();
  EXPECT_TRUE(test::close(grad(1e-30 / x, {x}, Tensor::from({1e30f}, {1}))[0], Tensor::from({-1e20f}, {1}), 1e-6));
}

// What does not vary has no part in a derivative, be it a factor of infinity.
TEST(ElementwiseGradient, SecondDerivativesOfTheInfiniteAreThoseOfTheFormula) {
  const auto second = [](const Function& f, float at) {
    const Tensor x = Tensor::from({at}, {1}).require_grad();
    return grad(grad(f(x), {x}, ones_like(x), {.create_graph = true})[0], {x}, ones_like(x))[0].item();
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(second([](const Tensor& x) { return square(x); }, kInfinity), 2);
  EXPECT_EQ(second([](const Tensor& x) { return pow(x, 2); }, -kInfinity), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(second([](const Tensor& x) { return pow(x, 3); }, 1e20f)), 6e20f);
  EXPECT_EQ(second([](const Tensor& x) { return exp(x); }, 89), kInfinity);
  EXPECT_EQ(second([](const Tensor& x) { return sqrt(x); }, kInfinity), 0);
  EXPECT_EQ(second([](const Tensor& x) { return 1 / x; }, 0), kInfinity);
}

}  // namespace
}  // namespace plumb
