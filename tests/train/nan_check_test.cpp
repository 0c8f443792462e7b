// The search for NaN, kernel by kernel.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/convert.h"
#include "ops/elementwise.h"
#include "tests/support/compare.h"
#include "train/nan_check.h"

namespace plumb::training {

using detail::Scoped;
namespace {

constexpr DType kFloating[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16};

Tensor of(std::vector<double> values, DType dtype) {
  return test::from_doubles(values, TensorSpec(Shape{static_cast<int64_t>(values.size())}, dtype));
}
Tensor converted(const Tensor& x) { return to(x, x.dtype() == DType::kF32 ? DType::kF64 : DType::kF32); }

TEST(NanCheck, LooksAtInputsOfEveryFloatingType) {
  NanCheck check;
  const ObserverScope watch(&check);
  for (const DType dtype : kFloating) {
    const Tensor bad = of({1, 2, NAN}, dtype);
    EXPECT_TRUE(test::refused([&] { converted(bad); }, message("cast: input 0 {} (3) nchw holds a NaN", dtype)));
    EXPECT_NO_THROW(converted(of({1, 2, INFINITY}, dtype))) << to_string(dtype) << ": infinity is a number";
  }
}

TEST(NanCheck, LooksAtOutputsOfEveryTypeThatIsComputedIn) {
  NanCheck check;
  const ObserverScope watch(&check);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBf16}) {
    EXPECT_TRUE(test::refused([&] { sqrt(of({4, -1}, dtype)); }, message("sqrt: output 0 {} (2) nchw holds", dtype)));
    EXPECT_NO_THROW(sqrt(of({4, 1}, dtype)));
  }
}

TEST(NanCheck, PassesOverWholeNumbers) {
  NanCheck check;
  const ObserverScope watch(&check);
  const Tensor ones = Tensor::from<int64_t>({-1, -1}, Shape{2});  // the bits of a NaN

  EXPECT_NO_THROW(to(ones, DType::kI32));
}

}  // namespace
}  // namespace plumb::training
