// grad runs through the ops between y and an x, and through no others.

#include <gtest/gtest.h>

#include "ops/concat.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/split.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"
#include "train/recomputed.h"

namespace plumb {
namespace {

using test::refused;

Tensor leaf(std::initializer_list<float> values) {
  return Tensor::from<float>(values, Shape{static_cast<int64_t>(values.size())}).require_grad();
}
Tensor random_leaf(Shape shape, uint64_t seed) { return test::random_tensor(TensorSpec(shape), seed).require_grad(); }
std::vector<float> values(const Tensor& x) { return {x.data<float>().begin(), x.data<float>().end()}; }
using Values = std::vector<float>;

// As for a backward pass in two halves, or for steps on a tensor within the net.
TEST(GradWays, WhatIsBehindAnIntermediateIsKept) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor h = relu(x * w);
  EXPECT_EQ(values(grad(sum(square(h)), {h})[0]), (Values{6, 16}));
  EXPECT_EQ(values(grad(sum(h), {w})[0]), (Values{1, 2}));
  EXPECT_TRUE(refused([&] { grad(sum(h), {w}); }, "retain_graph"));  // now it is released
}

TEST(GradWays, AnIntermediateBetweenYAndALeafIsRunThrough) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor h = x * w;
  const TensorList g = grad(sum(square(h)), {h, x});
  EXPECT_EQ(values(g[0]), (Values{6, 16}));
  EXPECT_EQ(values(g[1]), (Values{18, 64}));
}

TEST(GradWays, OnlyGradientsOnTheWayAreComputed) {
  const Tensor x = random_leaf(Shape{4, 8}, 1), w1 = random_leaf(Shape{6, 8}, 2), w2 = random_leaf(Shape{5, 6}, 3);
  const auto loss = [&] { return sum(linear(relu(linear(x, w1)), w2)); };
  const TensorList all = grad(loss(), {x, w1, w2});
  {
    const Tensor y = loss();
    test::KernelLog log;
    EXPECT_EQ(values(grad(y, {w2})[0]), values(all[2]));
    EXPECT_EQ(log.count("linear_backward_weight"), 1);
    EXPECT_EQ(log.count("linear_backward_input"), 0);
  }
  const Tensor y = loss();
  test::KernelLog log;
  EXPECT_EQ(values(grad(y, {x})[0]), values(all[0]));
  EXPECT_EQ(log.count("linear_backward_weight"), 0);
  EXPECT_EQ(log.count("linear_backward_input"), 2);
}

TEST(GradWays, OnlySomeTermsOfAConcatAndSomeOutputsOfASplit) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4, 5});
  const Tensor y = concat(std::vector<Tensor>{square(a), square(b)}, 0);
  const TensorList parts = split(y, {2, 3}, 0);
  test::KernelLog log;
  EXPECT_EQ(values(grad(sum(parts[0]) + sum(parts[1] * 2.0), {b})[0]), (Values{12, 16, 20}));
  EXPECT_EQ(log.count("slice"), 1);
}

// One layer after the other, each updated before the gradient of the next is asked for.
TEST(GradWays, WhatWasWrittenToBesideTheWayDoesNotMatter) {
  const Tensor x = random_leaf(Shape{4, 8}, 1);
  Tensor w1 = random_leaf(Shape{8, 8}, 2);
  const Tensor w2 = random_leaf(Shape{8, 8}, 3);
  const Tensor y = sum(linear(linear(linear(x, w1), w1), w2));
  const Tensor expected = grad(y, {w2}, {.retain_graph = true})[0];
  w1.copy_from(test::random_tensor(w1.spec(), 4));
  EXPECT_EQ(values(grad(y, {w2}, {.retain_graph = true})[0]), values(expected));
  EXPECT_TRUE(refused([&] { grad(y, {x}); }, "written to in between"));
}

// Only a third derivative of tanh would be refused; nobody asks for that of x.
TEST(GradWays, ADerivativeThatNobodyAsksForIsNotRefused) {
  const Tensor x = leaf({0.5f}), theta = leaf({2});
  const Tensor first = grad(sum(tanh(x)), {x}, {.create_graph = true})[0];
  const Tensor second = grad(sum(first), {x}, {.create_graph = true})[0];
  EXPECT_EQ(values(grad(sum(theta * second), {theta})[0]), values(second));
  EXPECT_TRUE(refused([&] { grad(sum(theta * second), {x}); }, "derivatives beyond"));
}

TEST(GradWays, ABlockThatIsComputedAgainIsLeftAloneWhereItIsNotOnTheWay) {
  const Tensor x = leaf({3}), w = leaf({2});
  const Tensor y = sum(training::recomputed([](const Tensor& t) { return exp(t); }, w)) + sum(x * x);
  const Tensor first = grad(y, {x}, {.create_graph = true})[0];
  EXPECT_EQ(values(grad(sum(first), {x})[0]), (Values{2}));
}

// Steps of descent that are differentiated later: each runs through its own ops alone.
TEST(GradWays, AnInnerStepDoesNotRunThroughTheStepsBefore) {
  const Tensor start = leaf({1, 2, 3});
  Tensor w = start * 1.0;
  std::vector<size_t> kernels;
  for (int step = 0; step < 4; ++step) {
    test::KernelLog log;
    w = w - grad(sum(square(w) * w), {w}, {.create_graph = true})[0] * 0.1;
    kernels.push_back(log.ran.size());
  }
  EXPECT_EQ(kernels.back(), kernels.front());
  EXPECT_TRUE(grad(sum(w), {start})[0]);
}

TEST(GradWays, WhatKeptNothingMayBeRunThroughAgain) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  const Tensor h = concat(std::vector<Tensor>{a + b, b}, 0);
  EXPECT_EQ(values(grad(sum(h), {a})[0]), (Values{1, 1}));
  EXPECT_EQ(values(grad(sum(h), {b})[0]), (Values{2, 2}));
}

TEST(GradWays, ManyBranchesAreToldApart) {
  const Tensor x = leaf({1}), other = leaf({2});
  Tensor y = x * 1.0, beside = other * 1.0;
  for (int i = 0; i < 100; ++i) {
    beside = square(beside) * 0.5;
    y = y + beside * x;
  }
  test::KernelLog log;
  EXPECT_EQ(values(grad(sum(y), {x})[0]), (Values{201}));  // 1 + 100 * 2
  EXPECT_LT(log.ran.size(), 350u);                         // nothing of `beside`
}

}  // namespace
}  // namespace plumb
