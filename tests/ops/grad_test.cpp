#include "ops/grad.h"

#include <gtest/gtest.h>

#include <thread>

#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {

namespace {

using test::refused;

Tensor leaf(std::initializer_list<float> values) {
  return Tensor::from<float>(values, Shape{static_cast<int64_t>(values.size())}).require_grad();
}
std::vector<float> values(const Tensor& x) { return {x.data<float>().begin(), x.data<float>().end()}; }
using Values = std::vector<float>;

TEST(Grad, FollowsTheChainRule) {
  const Tensor x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  const TensorList g = grad(sum(square(x) * w), {x, w});  // d/dx = 2 x w, d/dw = x^2
  EXPECT_EQ(values(g[0]), (Values{8, 20, 36}));
  EXPECT_EQ(values(g[1]), (Values{1, 4, 9}));
}

TEST(Grad, StoresNothingOnTheTensors) {
  const Tensor x = leaf({1, 2});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values(grad(sum(square(x)), {x})[0]), (Values{2, 4}));
}

TEST(Grad, TakesACotangent) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor dy = Tensor::from<float>({1, 10, 100}, Shape{3});
  EXPECT_EQ(values(grad(square(x), {x}, dy)[0]), (Values{2, 40, 600}));
  EXPECT_EQ(values(dy), (Values{1, 10, 100}));
  EXPECT_TRUE(refused([&] { grad(square(x), {x}); }, "grad: y has shape (3); pass a cotangent"));
  EXPECT_TRUE(refused([&] { grad(square(x), {x}, Tensor::from<float>({1}, Shape{1})); },
                      "it must be of y's spec f32 (3) nchw"));
}

TEST(Grad, OfALeafOrOfAnIntermediateTensor) {
  const Tensor x = leaf({1, 2});
  const Tensor h = square(x), y = sum(h * h);
  const TensorList g = grad(y, {h, x, y});
  EXPECT_EQ(values(g[0]), (Values{2, 8}));
  EXPECT_EQ(values(g[1]), (Values{4, 32}));
  EXPECT_EQ(values(g[2]), (Values{1}));
  const Tensor dy = Tensor::from<float>({7, 8}, Shape{2});
  EXPECT_EQ(values(grad(x, {x}, dy)[0]), (Values{7, 8}));
}

TEST(Grad, TensorsNamedTwiceGetTheSameGradient) {
  const Tensor x = leaf({3}), w = leaf({5});
  for (const auto& list : std::vector<std::vector<Tensor>>{{x, w, x}, {x, x, w}, {w, w, w, x, w, x}}) {
    const TensorList g = grad(sum(x * w), list);
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(values(g[i]), list[i].node.get() == x.node.get() ? Values{5} : Values{3}) << i;
    }
  }
}

TEST(Grad, RefusesWhatWasNotRecorded) {
  const Tensor x = leaf({1}), constant = Tensor::from<float>({1}, Shape{1});
  EXPECT_TRUE(refused([&] { grad(sum(square(constant)), {x}); }, "computed without recording"));
  const std::vector<Tensor> both{x, constant};
  EXPECT_TRUE(refused([&] { grad(sum(square(x)), both); }, "grad: x number 1 f32 (1) nchw does not need a gradient"));
  EXPECT_TRUE(refused([&] { grad(sum(square(x)), {Tensor()}); }, "grad: x number 0 (empty) does not need a gradient"));
  EXPECT_TRUE(refused([] { grad(Tensor(), {}); }, "grad: y"));
  const NoGrad no_grad;
  EXPECT_TRUE(refused([&] { grad(sum(square(x)), {x}); }, "computed without recording"));
}

TEST(Grad, UnusedTensorsAreAnErrorUnlessAllowed) {
  const Tensor x = leaf({2}), unused = leaf({1});
  EXPECT_TRUE(refused([&] { grad(sum(square(x)), {unused, x}); }, "grad: y does not depend on x number 0"));
  const TensorList g = grad(sum(square(x)), {unused, x}, {.allow_unused = true});
  EXPECT_FALSE(g[0]);
  EXPECT_EQ(values(g[1]), (Values{4}));
}

TEST(Grad, ASecondBackwardNeedsTheGraphRetained) {
  const Tensor x = leaf({3});
  const Tensor y = sum(square(x));
  EXPECT_EQ(values(grad(y, {x}, {.retain_graph = true})[0]), (Values{6}));
  EXPECT_EQ(values(grad(y, {x})[0]), (Values{6}));
  EXPECT_TRUE(refused([&] { grad(y, {x}); }, "pass retain_graph to the first call"));
}

TEST(Grad, BackwardFreesWhatWasKept) {
  const Tensor x = test::random_tensor(TensorSpec(Shape{1024}), 1).require_grad();
  grad(sum(sigmoid(exp(square(x)))), {x});  // makes the workspace
  const int64_t before = cpu_memory().stats().live_total();
  const Tensor y = sum(sigmoid(exp(square(x))));
  EXPECT_GE(cpu_memory().stats().live_total(), before + 2 * 4096);  // the outputs of exp and sigmoid
  grad(y, {x});
  EXPECT_EQ(cpu_memory().stats().live_total(), before + 256);
}

TEST(Grad, GradientsOfGradients) {
  const Tensor x = leaf({2});
  const Tensor y = sum(square(x) * x);                           // x^3
  const Tensor first = grad(y, {x}, {.create_graph = true})[0];  // 3 x^2
  EXPECT_EQ(values(first), (Values{12}));
  EXPECT_EQ(values(grad(sum(first), {x})[0]), (Values{12}));  // 6 x
  EXPECT_FALSE(grad(sum(square(x)), {x})[0].requires_grad());
}

// The cotangent of a sum goes to both of its operands as one value: adding into one must not change the other.
TEST(Grad, AccumulationDoesNotTouchSharedGradients) {
  const Tensor a = leaf({1, 1}), b = leaf({2, 2});
  const Tensor both = a + b;
  const Tensor y = sum(both) + sum(a * 3.0) + sum(a * a);

  const TensorList g = grad(y, {a, b, both}, {.retain_graph = true});

  EXPECT_EQ(values(g[0]), (Values{6, 6}));  // 1 + 3 + 2 a
  EXPECT_EQ(values(g[1]), (Values{1, 1}));
  EXPECT_EQ(values(g[2]), (Values{1, 1}));
}

TEST(Grad, AccumulationDoesNotTouchTheCotangentOrAliasesOfIt) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor dy = Tensor::from<float>({1, 1, 1, 1}, Shape{2, 2});
  const Tensor y = reshape(x, {2, 2}) + reshape(x * 2.0, {2, 2}) + reshape(x * x, {2, 2});
  EXPECT_EQ(values(grad(y, {x}, dy)[0]), (Values{5, 7, 9, 11}));
  EXPECT_EQ(values(dy), (Values{1, 1, 1, 1}));
}

// In f32 (1 + 1e8) - 1e8 is 0 and 1 + (1e8 - 1e8) is 1: the order of the sum is seen.
TEST(Grad, GradientsAddUpInTheOrderInWhichBackwardReachesThem) {
  const Tensor x = leaf({1});
  const Tensor first = x * 1.0, second = x * 1e8, third = x * -1e8;
  const Tensor y = sum(first + second + third);
  EXPECT_EQ(values(grad(y, {x})[0]), (Values{1}));  // the last op first: (-1e8 + 1e8) + 1

  const Tensor big = x * 1e8, one = x * 1.0, negative = x * -1e8;
  EXPECT_EQ(values(grad(sum(big + one + negative), {x})[0]), (Values{0}));  // (-1e8 + 1) + 1e8
}

// No op computes in f16, and yet its gradients add up.
TEST(Grad, WhatIsCastToF16MayBeUsedTwice) {
  const Tensor x = leaf({1, 2});
  for (const bool again : {false, true}) {
    const Tensor h = to(x, DType::kF16);
    const Tensor dx = grad(sum(to(h, DType::kF32) * to(h, DType::kF32)), {x}, {.create_graph = again})[0];
    EXPECT_EQ(values(dx), (Values{2, 4}));
    if (again) {
      EXPECT_EQ(values(grad(sum(dx), {x})[0]), (Values{2, 2}));
    }
  }
}

TEST(Grad, AccumulatesInPlaceWhenNobodyElseLooks) {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(x * 2.0 + x * 3.0 + x * 4.0);
  test::KernelLog log;
  EXPECT_EQ(values(grad(y, {x})[0]), (Values{9, 9}));
  EXPECT_EQ(log.count("accumulate"), 2);
  EXPECT_EQ(log.count("add"), 0);
}

TEST(Grad, AnErrorInBackwardLeavesNoMarks) {
  const Tensor x = leaf({2}), w = leaf({3});
  Tensor scale = Tensor::from<float>({1}, Shape{1});
  const Tensor shared = square(x) * w;
  const Tensor bad = sum(shared * scale * leaf({1}) + x);
  scale.mutable_data<float>()[0] = 9;
  EXPECT_THROW(grad(bad, {x, w}), Error);

  const TensorList g = grad(sum(shared), {x});

  EXPECT_EQ(values(g[0]), (Values{12}));
  EXPECT_TRUE(detail::ctx.recording);
  EXPECT_EQ(detail::ctx.memory_class, MemoryClass::kActivation);
}

TEST(Grad, GradientsAreCountedAsGradients) {
  const Tensor x = test::random_tensor(TensorSpec(Shape{1024}), 1).require_grad();
  const auto live = [] { return cpu_memory().stats().live_bytes[static_cast<size_t>(MemoryClass::kGradient)]; };
  const int64_t before = live();
  const TensorList g = grad(sum(square(x)), {x});
  EXPECT_EQ(live() - before, 4096);
}

TEST(Grad, OnlyNeededGradientsAreComputed) {
  const Tensor x = test::random_tensor(TensorSpec(Shape{4, 8}), 1),
               w = test::random_tensor(TensorSpec(Shape{5, 8}), 2).require_grad();
  const Tensor y = sum(linear(x, w));
  test::KernelLog log;
  grad(y, {w});
  EXPECT_GT(log.count("linear_backward_weight"), 0);
  EXPECT_EQ(log.count("linear_backward_input"), 0);
}

TEST(Grad, ADeepGraphIsFast) {
#ifdef PLUMB_SANITIZED
  constexpr int kDeep = 50000;
#else
  constexpr int kDeep = 1000000;
#endif
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < kDeep; ++i) y = neg(y);
  EXPECT_EQ(values(grad(sum(y), {x})[0]), (Values{1}));
}

TEST(Grad, WideGraphsAreWalkedInOrder) {
  const Tensor x = leaf({1});
  Tensor y = x * 1.0;
  for (int i = 0; i < 1000; ++i) y = y + x;
  EXPECT_EQ(values(grad(sum(y), {x})[0]), (Values{1001}));
}

// A graph that was begun on one thread and goes on on another.
TEST(Grad, GraphsMayMoveBetweenThreads) {
  const Tensor x = leaf({3});
  Tensor h;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) h = square(x);  // this thread's numbers run ahead
  }).join();
  const Tensor u = h * 2.0, v = h * 5.0;
  EXPECT_EQ(values(grad(sum(u + v), {x, h})[0]), (Values{42}));
  EXPECT_TRUE(refused([&] { grad(sum(u), {x}); }, "retain_graph"));
}

}  // namespace
}  // namespace plumb
