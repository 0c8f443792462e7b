// Where the output of a ReLU is used twice, the two gradients are added in the pass that applies the ReLU's own.
#include <gtest/gtest.h>

#include "ops/batch_norm.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

const TensorSpec kSpec(Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc);

Tensor parameter(double value) { return full(TensorSpec(Shape{3}, DType::kF32), value); }

// x + addend as a batch normalisation that changes nothing, and the ReLU of that: its own, or an op that knows no sums.
Tensor block(const Tensor& x, const Tensor& addend, bool is_own) {
  BatchNormParams p{.epsilon = 0, .momentum = 0, .train = 0};
  p.activation = is_own ? Activation::kRelu : Activation::kNone;
  const Tensor z = batch_norm(x, parameter(1), parameter(0), parameter(0), parameter(1), p, addend);
  return is_own ? z : relu(z);
}

Tensor x_of(int seed) {
  Tensor x = small_integers(kSpec, seed);
  x.require_grad();
  return x;
}
// A sum of products, so that gradients are not shared.
Tensor used(const Tensor& h, int times) {
  Tensor y = mul(h, small_integers(kSpec, 11));
  for (int i = 1; i < times; ++i) y = add(y, mul(h, small_integers(kSpec, 11 + i)));
  return y;
}

TEST(ReluOfSum, GradientsAreAddedWhereTheReluPassesThem) {
  for (const int times : {1, 2, 3, 4}) {
    SCOPED_TRACE(times);
    const Tensor x = x_of(1), addend = x_of(2), dy = small_integers(kSpec, 3);
    const TensorList expected = grad(used(block(x, addend, false), times), {{x, addend}}, dy);
    const Tensor y = used(block(x, addend, true), times);
    const KernelLog log;
    const TensorList got = grad(y, {{x, addend}}, dy);
    EXPECT_EQ(log.count("relu_backward"), times == 1 ? 1 : 0);
    EXPECT_EQ(log.count("accumulate"), times - 1);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(got[i], expected[i])) << i;
  }
}

TEST(ReluOfSum, AnOutputThatIsAskedForGetsTheWholeSum) {
  const Tensor x = x_of(1), addend = x_of(2), dy = small_integers(kSpec, 3);
  for (const bool tells : {false, true}) {
    TensorList lists[2];
    Tensor told;
    for (const bool is_own : {false, true}) {
      const Tensor h = block(x, addend, is_own);
      GradOptions options;
      if (tells) options.on_final = [&](size_t i, const Tensor& g) { told = i == 1 ? g.clone() : told; };
      lists[is_own] = grad(used(h, 3), {{x, h}}, dy, options);
    }
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(lists[0][i], lists[1][i])) << i;
    if (tells) {
      EXPECT_TRUE(bitwise_equal(told, lists[1][1]));
    }
  }
}

TEST(ReluOfSum, CanBeDifferentiatedAgain) {
  const Tensor x = x_of(1), addend = x_of(2);
  Tensor dy = small_integers(kSpec, 3);
  dy.require_grad();
  TensorList second[2];
  for (const bool is_own : {false, true}) {
    const TensorList first = grad(used(block(x, addend, is_own), 2), {{x}}, dy, {.create_graph = true});
    second[is_own] = grad(first[0], {{dy}}, small_integers(kSpec, 4));
  }
  EXPECT_TRUE(bitwise_equal(second[0][0], second[1][0]));
}

}  // namespace
}  // namespace plumb::test
