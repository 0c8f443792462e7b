// Gradients of elementwise ops where a formula alone does not tell, and what runs for them.
#include <gtest/gtest.h>

#include <limits>

#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

using test::refused;

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

TEST(ElementwiseGradient, ANanBelowAnExponentIsOneInItsGradient) {
  const Tensor a = Tensor::from({std::nan(""), -1.0}, {2}), b = Tensor::from({2.0, 2.0}, {2}).require_grad();
  const Tensor by_b = grad(sum(pow(a, b)), {b}, {.create_graph = true})[0];
  EXPECT_TRUE(std::isnan(by_b.at({0})));
  EXPECT_EQ(by_b.at({1}), 0);
  EXPECT_TRUE(std::isnan(grad(sum(by_b), {b})[0].at({0})));
}

}  // namespace
}  // namespace plumb
