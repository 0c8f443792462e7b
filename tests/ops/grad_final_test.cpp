// What grad tells of gradients to which nothing is added any more.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "graph/program.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/matmul.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

using test::bitwise_equal;

Tensor parameter(uint64_t seed) { return uniform({4, 4}, -1, 1, seed).require_grad(); }

TEST(GradFinal, ToldWhileTheLayersBeforeAreStillToCome) {
  const Tensor x = uniform({4, 4}, -1, 1, 9);
  const std::vector<Tensor> w{parameter(1), parameter(2), parameter(3)};
  const Tensor loss = sum(matmul(matmul(matmul(x, w[0]), w[1]), w[2]));
  std::vector<std::string> lines;  // what runs and what is told, in order
  const test::AfterEveryKernel watch([&](const PreparedKernel& p, const Launch&) { lines.push_back(p.kind->name); });
  std::vector<Tensor> told(3);
  const TensorList all = grad(loss, w, {.on_final = [&](size_t i, const Tensor& g) {
                                lines.push_back("final " + std::to_string(i));
                                told[i] = g;
                              }});
  std::vector<std::string> products;
  for (const std::string& line : lines) {
    if (line == "matmul" || line.starts_with("final")) products.push_back(line);
  }
  EXPECT_EQ(products, (std::vector<std::string>{"matmul", "matmul", "final 2", "matmul", "matmul", "final 1", "matmul",
                                                "final 0"}));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(bitwise_equal(told[i], all[i])) << i;
}

TEST(GradFinal, OfATensorUsedTwiceAfterBothAndOfTheUnusedNever) {
  const Tensor w = parameter(1), v = parameter(2), unused = parameter(3);
  const Tensor loss = sum(matmul(tanh(matmul(w, v)), w));
  std::vector<size_t> order;
  const TensorList all =
      grad(loss, {w, v, unused, w}, {.allow_unused = true, .on_final = [&](size_t i, const Tensor& g) {
                                       EXPECT_TRUE(g);
                                       order.push_back(i);
                                     }});
  std::vector<size_t> sorted = order;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, (std::vector<size_t>{0, 1, 3})) << "the one named twice is told of twice";
  const TensorList plain = grad(sum(matmul(tanh(matmul(w, v)), w)), {w, v});
  EXPECT_TRUE(bitwise_equal(all[0], plain[0]));
  EXPECT_FALSE(all[2]);
}

TEST(GradFinal, HandlesThatGradWasGivenMayBeAssignedTo) {
  TensorList p{parameter(1), parameter(2)};
  const auto loss_of = [&] { return sum(matmul(tanh(matmul(p[0], p[1])), p[0])); };
  const TensorList plain = grad(loss_of(), p), before = p;
  Tensor loss = loss_of();
  const TensorList all = grad(loss, p, {.on_final = [&](size_t i, const Tensor& g) {
                                p[i] -= 0.5f * g;
                                loss = Tensor();
                              }});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(bitwise_equal(all[i], plain[i])) << i;
    EXPECT_TRUE(bitwise_equal(p[i], (before[i] - 0.5f * plain[i]).detached())) << i;
  }
}

TEST(GradFinal, WhatIsWrittenToItIsReturned) {
  const Tensor w = parameter(1);
  const TensorList all = grad(sum(square(w)), {w}, {.on_final = [](size_t, const Tensor& g) {
                                Tensor written = g;
                                for (float& v : written.mutable_data<float>()) v = 7;
                              }});
  EXPECT_EQ(all[0].at({3, 3}), 7);
}

// Both operands of a sum have its gradient, and so have the caller's dy and an x that is y.
TEST(GradFinal, WhatIsWrittenShowsInNoOtherGradient) {
  const Tensor a = parameter(1), b = parameter(2), x = parameter(3);
  const Tensor h = a + b, y = reshape(h, {16});
  const Tensor dy = uniform({16}, -1, 1, 4), kept = dy.clone();
  const auto write = [](size_t i, const Tensor& g) {
    Tensor written = g;
    written.mutable_data<float>()[i] = 100 + static_cast<float>(i);
  };
  for (const auto& xs : {TensorList{a, b}, TensorList{b, a}, TensorList{y, a, b}, TensorList{a, b, a}}) {
    const TensorList all = grad(y, xs, dy, {.retain_graph = true, .on_final = write});
    for (size_t i = 0; i < xs.size(); ++i) {
      for (size_t element = 0; element < 16; ++element) {
        // An x that is named twice has one gradient, which was written twice.
        const bool is_written =
            element == i || (xs.size() == 3 && xs[i].node.get() == xs[element % 3].node.get() && element < 3);
        EXPECT_EQ(all[i].data<float>()[element],
                  is_written ? 100 + static_cast<float>(element) : kept.data<float>()[element])
            << i << " " << element;
      }
    }
    EXPECT_TRUE(bitwise_equal(dy, kept));
  }
  // What is written into an intermediate one's is what backward goes on with.
  const TensorList from_h = grad(y, {h, a}, dy, {.retain_graph = true, .on_final = write});
  EXPECT_EQ(from_h[0].data<float>()[0], 100);
  EXPECT_EQ(from_h[1].data<float>()[0], 100);
  const TensorList through = grad(sum(square(x) + x), {x}, {.on_final = write});
  EXPECT_EQ(through[0].data<float>()[0], 100);
  EXPECT_EQ(through[0].data<float>()[5], 2 * x.data<float>()[5] + 1);
}

// Sequence numbers are a thread's own: nodes of two may have the same.
TEST(GradFinal, ToldWhenAllIsAddedOfWhatTwoThreadsRecorded) {
  const Tensor x = Tensor::from({1.0f}, {1}).require_grad(), z = Tensor::from({1.0f}, {1}).require_grad();
  Tensor a;
  std::thread([&] { a = x * 3; }).join();
  std::thread([&] {
    const Tensor b = z * 5, c = x * 7;
    float told[2] = {};
    const TensorList g =
        grad((c + a) + b, {x, z}, {.on_final = [&](size_t i, const Tensor& dx) { told[i] = dx.data<float>()[0]; }});
    EXPECT_EQ(g[0].data<float>()[0], 10);
    EXPECT_EQ(told[0], 10);
    EXPECT_EQ(told[1], 5);
  }).join();
}

TEST(GradFinal, OfAnIntermediateAndOfTheResultItself) {
  const Tensor w = parameter(1);
  const Tensor h = square(w), y = sum(h);
  std::vector<size_t> order;
  grad(y, {w, h, y}, {.on_final = [&](size_t i, const Tensor&) { order.push_back(i); }});
  EXPECT_EQ(order, (std::vector<size_t>{2, 1, 0}));
}

TEST(GradFinal, ToldWhileCapturingAsWell) {
  const Tensor w = parameter(1), twice = Tensor::empty(w.spec());
  Program step = capture([&] {
    return grad(sum(square(w)), {w}, {.on_final = [&](size_t, const Tensor& g) { Tensor(twice).copy_from(g + g); }});
  });
  step.run();
  EXPECT_EQ(twice.at({1, 1}), 4 * w.at({1, 1}));
}

}  // namespace
}  // namespace plumb
