// Captured functions that are given their own results.
#include <gtest/gtest.h>

#include "graph/program.h"
#include "ops/elementwise.h"
#include "ops/reshape.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

// A result that is an input is given to the next call, which fills its inputs one after the other.
TEST(StaticFunctions, AResultThatIsAnInputIsATensorOfItsOwn) {
  StaticFunction fibonacci([](std::span<const Tensor> in) { return TensorList{in[0] + in[1], in[0]}; });
  TensorList h = fibonacci({Tensor::from({2.0f}, {1}), Tensor::from({1.0f}, {1})});
  for (const float expected : {5.0f, 8.0f, 13.0f}) {
    h = fibonacci({h[0], h[1]});
    EXPECT_EQ(h[0].data<float>()[0], expected);
  }
  EXPECT_EQ(h[1].data<float>()[0], 8);
  StaticFunction swapped([](std::span<const Tensor> in) { return TensorList{in[1], reshape(in[0], {1, 1})}; });
  const TensorList& s = swapped({Tensor::from({2.0f}, {1}), Tensor::from({1.0f}, {1})});
  EXPECT_EQ(swapped({s[0], reshape(s[1], {1})})[0].data<float>()[0], 2);
}

TEST(StaticFunctions, OneThatWasMovedFromSaysSo) {
  StaticFunction first([](std::span<const Tensor> in) { return TensorList{in[0] * 2}; });
  StaticFunction second = std::move(first);
  const Tensor x = Tensor::from({2.0f}, {1});
  EXPECT_EQ(second({x})[0].item(), 4);
  EXPECT_TRUE(test::refused([&] { first({x}); }, "captured function: it was moved from"));
}

}  // namespace
}  // namespace plumb
