// What a gradient of max_pool2d's gradient picks from its images: kernels that no case meets.
#include <gtest/gtest.h>

#include "ops/grad.h"
#include "ops/pool2d.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

TEST(MaxPool2dGatherTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  const std::pair<Shape, Pool2dParams> pools[] = {
      {{2, 16, 8, 10}, {}},
      {{2, 17, 11, 13}, {{3, 2}, {4, 3}, {1, 0, 0, 1}}},
      {{3, 5, 9, 11}, {{2, 3}, {1, 3}, {0, 1, 2, 0}}},
      {{1, 3, 33, 41}, {.kernel = 3, .stride = 2, .padding = 1}},
      {{0, 3, 4, 4}, {}},
  };
  KernelCheck check(8);  // gradients of windows that overlap are sums
  for (const auto& [shape, params] : pools) {
    for_each_spec({&shape, 1}, {DType::kF32, DType::kF64, DType::kBf16}, [&, p = params](const TensorSpec& spec) {
      const Tensor x = random_tensor(spec, 1).require_grad();
      const Tensor y = max_pool2d(x, p), dy = random_tensor(y.spec(), 2).require_grad();
      const Tensor dx = grad(y, {x}, dy, {.create_graph = true})[0];
      grad(dx, {dy}, random_tensor(dx.spec(), 3));
    });
  }
  EXPECT_TRUE(check.checked().contains("max_pool2d_gather:loop"));
}

}  // namespace
}  // namespace plumb::test
