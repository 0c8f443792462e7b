// Sums of very many terms: adding on and on, a sum in f32 loses digits of each term.
#include <gtest/gtest.h>

#include "dispatch/policy.h"
#include "ops/conv2d.h"
#include "ops/fill.h"
#include "ops/grad.h"

namespace plumb {
namespace {

// Over a hundred thousand equal tiles, one sum in f32 is off by a thousandth.
TEST(LongSums, GradientsOfWeightsByWinogradStayAccurate) {
  const int64_t n = 8, side = 224;
  for (const char* algorithm : {"winograd_f2x2", "winograd_f4x4"}) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    const Tensor x = full(TensorSpec(Shape{n, 16, side, side}, DType::kF32, Layout::kNhwc), 0.3f);
    const Tensor w = zeros({16, 16, 3, 3}).require_grad();
    const Tensor y = conv2d(x, w, {}, {.padding = 1});
    const Tensor dw = grad(y, {w}, full(y.spec(), 0.7f))[0];
    const double expected =
        static_cast<double>(0.3f) * static_cast<double>(0.7f) * static_cast<double>(n * side * side);
    EXPECT_NEAR(dw.at({3, 5, 1, 1}) / expected, 1, 1e-4) << algorithm;
  }
}

}  // namespace
}  // namespace plumb
