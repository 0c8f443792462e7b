// Any number of threads may read the same tensors at the same time. Threads that train:
// tests/models/threading_test.cpp.
#include <gtest/gtest.h>

#include <thread>

#include "ops/conv2d.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

// Inference: weights are shared, and packed by whoever comes first.
TEST(Threads, ShareWeights) {
  const auto made = [](const Shape& shape, uint64_t seed) { return test::random_tensor(shape, seed, -0.2, 0.2); };
  const Tensor w1 = made({16, 3, 3, 3}, 1), b1 = made({16}, 2), w2 = made({16, 16, 3, 3}, 3),
               w3 = made({10, 16 * 6 * 6}, 4), b3 = made({10}, 5);
  const Tensor x = test::random_tensor(TensorSpec(Shape{4, 3, 6, 6}, DType::kF32, Layout::kNhwc), 6);
  const Conv2dParams p{.padding = 1, .activation = Activation::kRelu};
  const auto logits = [&] { return linear(flatten(conv2d(conv2d(x, w1, b1, p), w2, p)), w3, b3); };
  std::vector<Tensor> results(4);
  std::vector<std::thread> threads;
  for (Tensor& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) result = logits();
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Tensor& result : results) EXPECT_TRUE(test::bitwise_equal(result, logits()));
}

}  // namespace
}  // namespace plumb
