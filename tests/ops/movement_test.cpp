// Gradients of the ops that move elements, one within the other.
#include "tests/ops/movement.h"
#include "ops/concat.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/pad2d.h"
#include "ops/permute.h"
#include "ops/slice.h"
#include "tests/support/gradcheck.h"

namespace plumb {
namespace {

Tensor leaf(const TensorSpec& spec, uint64_t seed) { return test::random_tensor(spec, seed).require_grad(); }

TEST(Movement, GradientsAreThoseOfDifferences) {
  using Span = std::span<const Tensor>;
  const Dims order{2, 0, 3, 1};
  const Shape begin{0, 1, 2, 0}, part{2, 2, 1, 5}, whole{2, 5, 7, 6};
  const Sides<int64_t> border{1, 2, 0, 1};
  const std::pair<const char*, test::Function> cases[] = {
      {"to", [](Span x) { return to(square(to(square(x[0]), Layout::kNhwc)), Layout::kChwn); }},
      {"permute", [&](Span x) { return square(permute(square(x[0]), order)); }},
      {"slice", [&](Span x) { return square(slice(square(x[0]), begin, part)); }},
      {"pad", [&](Span x) { return square(pad(square(x[0]), begin, whole, 3)); }},
      {"pad2d", [&](Span x) { return square(pad2d(square(x[0]), border, 2)); }},
      {"concat",
       [](Span x) {
         return square(concat({square(x[0]), x[1], square(x[0])}, 1));
       }},
  };
  const Tensor inputs[] = {leaf({Shape{2, 3, 4, 5}, DType::kF64}, 1), leaf({Shape{2, 1, 4, 5}, DType::kF64}, 2)};
  for (const auto& [name, f] : cases) {
    const Span used(inputs, name == std::string("concat") ? 2 : 1);
    EXPECT_TRUE(test::gradcheck(f, used)) << name;
    EXPECT_TRUE(test::gradgradcheck(f, used)) << name;
  }
}

TEST(Movement, GradientsComeInTheSpecOfTheInput) {
  const TensorSpec spec(Shape{3, 5, 4, 2}, DType::kF32, Layout::kNhwc);
  const Tensor x = leaf(spec, 1);
  const auto gradient = [&](const Tensor& y) {
    const Tensor dy = test::small_integers(y.spec(), 2);
    return std::pair(grad(y, {x}, dy)[0], dy);
  };

  const auto [by_layout, dy_layout] = gradient(to(x, Layout::kChwn));
  EXPECT_EQ(by_layout.spec(), spec);
  EXPECT_TRUE(test::equal(by_layout, dy_layout));
  const auto [by_dtype, dy_dtype] = gradient(to(x, DType::kBf16));
  EXPECT_EQ(by_dtype.spec(), spec);
  EXPECT_EQ(test::to_doubles(by_dtype), test::to_doubles(dy_dtype));
  const auto [by_slice, dy_slice] = gradient(slice(x, {0, 2, 1, 0}, {3, 3, 2, 2}));
  EXPECT_TRUE(test::equal(by_slice, pad(dy_slice, {0, 2, 1, 0}, {3, 5, 4, 2})));
  const auto [by_border, dy_border] = gradient(pad2d(x, {1, 0, 2, 0}));
  EXPECT_TRUE(test::equal(by_border, slice(dy_border, {0, 0, 1, 2}, {3, 5, 4, 2})));
  EXPECT_FALSE(to(x, DType::kI32).requires_grad());
}

}  // namespace
}  // namespace plumb
