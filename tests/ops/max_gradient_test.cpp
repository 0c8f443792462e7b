// To which elements the gradient of a maximum goes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dispatch/gate.h"
#include "kernels/reduce.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/permute.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

TEST(MaxGradient, TheGradientOfAMaximumIsOneKernel) {
  const Tensor x = Tensor::from<float>({1, 4, 4, 2, 3, 1}, Shape{2, 3}).require_grad();
  const Tensor dy = Tensor::from<float>({6, 10}, Shape{2, 1}), y = max(x, {1}, true);
  test::KernelLog log;
  EXPECT_TRUE(test::equal(grad(y, {x}, dy)[0], Tensor::from<float>({0, 3, 3, 0, 10, 0}, Shape{2, 3})));
  EXPECT_EQ(log.ran, std::vector<std::string>{"max_backward:loop"});
}

// Runs and columns, wider than a vector and than a tile, in which many are equal and some are no numbers.
TEST(MaxGradient, TheGradientOfAMaximumIsSharedByAllThatEqualIt) {
  const Shape shape{3, 5, 4, 150};
  for (const Layout layout : kPublicLayouts) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      std::vector<double> elements = test::to_doubles(test::small_integers(TensorSpec(shape, DType::kF64), 3, 3));
      for (size_t i = 0; i < elements.size(); i += 1009) elements[i] = NAN;
      const Tensor x = test::from_doubles(elements, TensorSpec(shape, dtype, layout));
      for (uint32_t mask = 0; mask < 16; ++mask) {
        Shape of_y = shape;
        for (int d = 0; d < 4; ++d) {
          if (mask >> d & 1) of_y = of_y.with(d, 1);
        }
        const TensorSpec spec(of_y, dtype, layout);
        const Tensor y = run<Reduce>({Reduction::kMax, mask}, {x}, spec), dy = test::small_integers(spec, 4, 1000);
        // The same by ops of their own: which are equal, and how many of them there are.
        const auto to_x = [&](const Tensor& t) { return test::to_doubles(expand(t, x.spec())); };
        const std::vector<double> largest = to_x(y);
        std::vector<double> equal(elements.size());
        for (size_t i = 0; i < equal.size(); ++i)
          equal[i] = elements[i] == largest[i] || (std::isnan(elements[i]) && std::isnan(largest[i]));
        const auto count = to_x(run<Reduce>({Reduction::kSum, mask}, {test::from_doubles(equal, x.spec())}, spec));
        std::vector<double> expected = to_x(dy);
        for (size_t i = 0; i < equal.size(); ++i) expected[i] *= equal[i] / count[i];
        const Tensor dx = run<MaxBackward>({}, {dy, x, y}, x.spec());
        ASSERT_TRUE(test::close(dx, test::from_doubles(expected, x.spec()), 1e-6)) << to_string(layout) << " " << mask;
      }
    }
  }
}

// dx is linear in dy; by x nothing is left but where maxima meet.
TEST(MaxGradient, TheGradientOfAMaximumHasAGradientByDy) {
  for (const Layout layout : kPublicLayouts) {
    const TensorSpec spec(Shape{1, 2, 1, 3}, DType::kF32, layout);
    const Tensor x = test::from_doubles(std::vector<double>{1, 4, 4, 2, 3, 1}, spec).require_grad();
    const Tensor y = max(x, {3});
    const Tensor dy = test::from_doubles(std::vector<double>{6, 10}, y.spec()).require_grad();
    const Tensor dx = grad(y, {x}, dy, {.create_graph = true})[0];
    EXPECT_EQ(test::to_doubles(dx), (std::vector<double>{0, 3, 3, 0, 10, 0})) << to_string(layout);
    const Tensor g = test::from_doubles(std::vector<double>{1, 2, 3, 4, 5, 6}, spec).require_grad();
    const Tensor by_dy = grad(dx, {dy}, g, {.create_graph = true})[0];
    EXPECT_EQ(test::to_doubles(by_dy), (std::vector<double>{2.5, 5})) << to_string(layout);
    EXPECT_EQ(test::to_doubles(grad(sum(by_dy), {g})[0]), (std::vector<double>{0, 0.5, 0.5, 0, 1, 0}));
  }
}

}  // namespace
}  // namespace plumb
