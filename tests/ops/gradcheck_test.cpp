#include "tests/support/gradcheck.h"

#include "ops/elementwise.h"

namespace plumb::test {
namespace {

// x^2 with the gradient x where `mask` is 0, and 2 x where it is 1.
Function squares(const Tensor& mask) {
  return [mask](std::span<const Tensor> in) {
    const Tensor& x = in[0];
    return x * x * mask + x * x.detached() * (1 - mask);
  };
}

TEST(Gradcheck, FindsOneWrongElementOfThousandsThatIsNotDrawn) {
  std::vector<double> ones(4096, 1.0);
  const TensorSpec spec(Shape{4, 1024}, DType::kF64);
  const Tensor x = random_tensor(spec, 3, 0.5, 1).require_grad(), right = Tensor::from<double>(ones, spec);
  ones[1234] = 0;
  const Tensor wrong = Tensor::from<double>(ones, spec);

  EXPECT_TRUE(gradcheck(squares(right), {&x, 1}));
  EXPECT_TRUE(gradcheck(squares(wrong), {&x, 1}, {.directions = 0})) << "it has been drawn; take another element";
  EXPECT_FALSE(gradcheck(squares(wrong), {&x, 1}));
  EXPECT_FALSE(gradgradcheck(squares(wrong), {&x, 1}));
}

TEST(Gradcheck, NamesAnElementThatIsWrong) {
  const Tensor x = Tensor::from<double>({1.0, 2.0, 3.0}, Shape{3}).require_grad(),
               mask = Tensor::from<double>({1.0, 0.0, 1.0}, Shape{3});
  const testing::AssertionResult found = gradcheck(squares(mask), {&x, 1}, {.directions = 0});
#ifndef PLUMB_SANITIZED  // where no element is looked at by itself
  EXPECT_FALSE(found);
  EXPECT_NE(std::string(found.message()).find("of input 0 at element 1 (in memory)"), std::string::npos)
      << found.message();
#endif
}

}  // namespace
}  // namespace plumb::test
