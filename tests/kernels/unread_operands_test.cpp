// What gradients say that they do not read: no kernel's bytes count it, and no loop fetches it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "dispatch/kernel_cache.h"
#include "kernels/elementwise.h"

namespace plumb {
namespace {

using detail::Stage;

// Whether a stage's value depends on operand k anywhere on a grid.
template <class Op>
bool depends_on(size_t k) {
  constexpr double kGrid[] = {-1.3, -0.5, 0.2, 0.4, 0.9, 2.0};
  constexpr size_t kSide = std::size(kGrid);
  size_t points = 1;
  for (size_t i = 0; i < Op::kInputs; ++i) points *= kSide;
  for (size_t point = 0; point < points; ++point) {
    std::array<double, Op::kInputs> at;
    for (size_t i = 0, rest = point; i < Op::kInputs; ++i, rest /= kSide) at[i] = kGrid[rest % kSide];
    const double here = Op{}(at);
    for (const double other : kGrid) {
      at[k] = other;
      const double there = Op{}(at);
      if (!std::isnan(here) && !std::isnan(there) && here != there) return true;
    }
  }
  return false;
}

TEST(UnreadOperands, OfGradientsOfTwoOperandsAreThoseOnWhichTheyDoNotDepend) {
  BinaryFunctors::for_each([]<class F>() {
    const auto check = [&]<class Op>() {
      for (size_t k = 0; k < 3; ++k) EXPECT_EQ(!depends_on<Op>(k), Op::kUnread >> k & 1) << F::kName << " " << k;
    };
    check.template operator()<detail::BinaryStage<F, Stage::kBackward>>();
    check.template operator()<detail::BinaryStage<F, Stage::kBackwardB>>();
  });
}

TEST(UnreadOperands, OfGradientsOfOneOperandAreNoneThatMatter) {
  UnaryFunctors::for_each([]<class F>() {
    using Op = detail::UnaryStage<F, Stage::kBackward>;
    EXPECT_FALSE((Op::kUnread & 0b10) && depends_on<Op>(1)) << F::kName;
    EXPECT_FALSE(Op::kUnread & 0b01) << F::kName;
  });
}

TEST(UnreadOperands, AreNotAmongTheBytesOfAKernel) {
  const TensorSpec row(Shape{1000}, DType::kF32), column(Shape{1000, 1}, DType::kF32);
  const TensorSpec table(Shape{1000, 1000}, DType::kF32);
  const auto of_mul = prepare<detail::Binary<functors::Mul, Stage::kBackward>>({}, {table, column, row}, {table});
  EXPECT_EQ(of_mul->kernel->info().bytes, static_cast<double>(2 * table.bytes() + row.bytes()));  // da = dy b
  const auto of_tanh = prepare<detail::Unary<functors::Tanh, Stage::kBackward>>({}, {table, table}, {table});
  EXPECT_EQ(of_tanh->kernel->info().bytes, static_cast<double>(3 * table.bytes()));
}

}  // namespace
}  // namespace plumb
