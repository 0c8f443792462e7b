// Any number of threads may use the library at the same time, each with tensors of its own or reading shared ones.
#include <gtest/gtest.h>

#include <thread>

#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

struct Net {
  std::vector<Tensor> parameters;
  explicit Net(uint64_t seed) {
    const auto add = [&](const Shape& shape, double range) {
      parameters.push_back(
          test::random_tensor(TensorSpec(shape), seed * 10 + parameters.size(), -range, range).require_grad());
    };
    add({16, 3, 3, 3}, 0.3);
    add({16}, 0.1);
    add({16, 16, 3, 3}, 0.1);
    add({10, 16 * 6 * 6}, 0.05);
    add({10}, 0.1);
  }
  Tensor loss(const Tensor& x, const Tensor& target) const {
    Conv2dParams p{.padding = {1, 1, 1, 1}, .activation = Activation::kRelu};
    Tensor h = conv2d(x, parameters[0], parameters[1], p);
    h = conv2d(h, parameters[2], p);
    h = linear(flatten(h), parameters[3], parameters[4]);
    return mean(square(h - target));
  }
};

// Losses of ten steps of gradient descent, and the parameters after them.
std::vector<Tensor> train(uint64_t seed, Layout layout) {
  Net net(seed);
  std::vector<Tensor> results;
  const Tensor x = test::random_tensor(TensorSpec(Shape{4, 3, 6, 6}, DType::kF32, layout), seed + 100);
  const Tensor target = test::random_tensor(TensorSpec(Shape{4, 10}), seed + 200);
  for (int step = 0; step < 10; ++step) {
    const Tensor loss = net.loss(x, target);
    const TensorList gradients = grad(loss, net.parameters);
    const NoGrad no_grad;
    for (size_t i = 0; i < gradients.size(); ++i) {
      net.parameters[i] = (net.parameters[i].detached() - gradients[i] * 0.1).require_grad();
    }
    results.push_back(loss.detached());
  }
  for (const Tensor& t : net.parameters) results.push_back(t.detached());
  return results;
}

TEST(Threads, TrainSeparateNetsBitForBitAsOneAfterAnother) {
  constexpr size_t kThreads = 4;
  const auto layout_of = [](size_t t) { return t % 2 ? Layout::kNhwc : Layout::kNchw; };
  std::vector<std::vector<Tensor>> together(kThreads), alone;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { together[t] = train(t, layout_of(t)); });
  }
  for (std::thread& t : threads) t.join();

  for (size_t t = 0; t < kThreads; ++t) alone.push_back(train(t, layout_of(t)));

  for (size_t t = 0; t < kThreads; ++t) {
    EXPECT_LT(alone[t][9].item(), alone[t][0].item()) << "it does not learn";
    for (size_t i = 0; i < alone[t].size(); ++i)
      EXPECT_TRUE(test::bitwise_equal(together[t][i], alone[t][i])) << t << " " << i;
  }
}

// Inference: weights are shared, and packed by whoever comes first.
TEST(Threads, ShareWeights) {
  const Net net(1);
  const Tensor target = test::random_tensor(TensorSpec(Shape{4, 10}), 2);
  const Tensor x = test::random_tensor(TensorSpec(Shape{4, 3, 6, 6}, DType::kF32, Layout::kNhwc), 3);
  std::vector<Tensor> losses(4);
  std::vector<std::thread> threads;
  for (Tensor& loss : losses) {
    threads.emplace_back([&] {
      const NoGrad no_grad;
      for (int i = 0; i < 20; ++i) loss = net.loss(x, target);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Tensor& loss : losses) EXPECT_TRUE(test::bitwise_equal(loss, net.loss(x, target).detached()));
}

}  // namespace
}  // namespace plumb
