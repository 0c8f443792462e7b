// Two ops that the library does not have, added as docs/adding-an-op.md says.
#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/flip.h"
#include "ops/grad.h"
#include "ops/reduce.h"

namespace plumb {
namespace {

TEST(NewOp, AnElementwiseOpIsOneFunctorAndOnePublicLine) {
  const Tensor x = Tensor::from<float>({-2, 3}, Shape{2}).require_grad();

  const Tensor y = cube(x);

  EXPECT_EQ(y.data<float>()[0], -8);
  EXPECT_EQ(y.data<float>()[1], 27);
  EXPECT_EQ(grad(sum(y), {x})[0].at({1}), 27);
}

TEST(NewOp, ALibraryOpIsItsOwnFilesAndNoOther) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, Shape{2, 2});

  const Tensor y = flip(x);

  EXPECT_EQ(y.data<float>()[0], 2);
  EXPECT_EQ(y.data<float>()[3], 3);
}

}  // namespace
}  // namespace plumb
