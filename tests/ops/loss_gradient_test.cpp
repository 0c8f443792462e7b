// Gradients of the losses' gradients with respect to the cotangent, which is wider than the numbers.
#include <gtest/gtest.h>

#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "ops/mse.h"
#include "tests/support/compare.h"
#include "tests/support/tensors.h"

namespace plumb {
namespace {

using Loss = Tensor (*)(const Tensor&);
Tensor to_second(const Tensor& x) { return mse(x, to(test::random_tensor(x.spec().with(DType::kBf16), 2), x.dtype())); }
Tensor to_labels(const Tensor& x) { return cross_entropy(x, Tensor::from<int64_t>({1, 4, 0}, Shape{3})); }

Tensor by_cotangent(Loss loss, const Tensor& numbers) {
  const Tensor x = numbers.detached().require_grad(), y = loss(x);
  const Tensor dy = to(Tensor::from({0.75f}, Shape{}), y.dtype()).require_grad();
  const Tensor dx = grad(y, std::vector<Tensor>{x}, dy, {.create_graph = true})[0];
  return grad(dx, std::vector<Tensor>{dy}, to(test::random_tensor(x.spec().with(DType::kBf16), 3), x.dtype()))[0];
}

TEST(LossGradient, ByTheCotangentOfBf16IsAsExactAsTheLoss) {
  const Tensor x = test::random_tensor(TensorSpec(Shape{3, 5}, DType::kBf16), 1);
  for (const Loss loss : {&to_second, &to_labels})
    EXPECT_TRUE(test::close(by_cotangent(loss, x), by_cotangent(loss, to(x, DType::kF64)), 1e-6));
}

}  // namespace
}  // namespace plumb
