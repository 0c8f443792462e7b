#include "models/layers.h"

#include <gtest/gtest.h>

#include <thread>

#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"

namespace plumb::models {
namespace {

using test::bitwise_equal;
using test::refused;

TEST(Layers, StandAlone) {
  const Conv2d conv(3, 8, 3, 1, 1);
  const BatchNorm2d norm(8);
  const Linear fc(8 * 4 * 4, 10);
  const Tensor x = uniform({2, 3, 8, 8}, -1, 1, 1);

  const Tensor y = fc(flatten_layer(max_pool(relu_layer(norm(conv(x))), 2)));

  EXPECT_EQ(y.shape(), Shape({2, 10}));
  EXPECT_EQ(grad(sum(y), {conv.weight, fc.bias})[1].at({9}), 2);
  EXPECT_FALSE(Conv2d(3, 8, 3, 1, 0, false).bias);
}

TEST(Layers, EachDrawsItsOwnNumbersAndAProgramTheSameOnesAgain) {
  seed_layers(5);
  const Linear a(4, 4), b(4, 4);
  seed_layers(5);
  const Linear again(4, 4);
  seed_layers(6);
  const Linear other(4, 4);
  EXPECT_TRUE(bitwise_equal(a.weight, again.weight) && bitwise_equal(a.bias, again.bias));
  EXPECT_FALSE(bitwise_equal(a.weight, b.weight));
  EXPECT_TRUE(bitwise_equal(b.weight, other.weight));  // the sequence goes on from any seed
}

TEST(Layers, OfThreadsThatSaidNothingDiffer) {
  Tensor first[2];
  for (Tensor& w : first) std::thread([&] { w = Linear(4, 4).weight; }).join();
  EXPECT_FALSE(bitwise_equal(first[0], first[1]));
}

TEST(Layers, ZeroPadOfLessThanNothingIsRefused) {
  EXPECT_TRUE(refused(
      [] {
        zero_pad(ones({1, 1, 6, 6}), -1);
      },
      "zero_pad: -1 zeros around (1, 1, 6, 6); use 0 or more"));
}

}  // namespace
}  // namespace plumb::models
