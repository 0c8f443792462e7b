// Sums of very many terms on a device: adding on and on, a sum in f32 loses digits of each term.
#include <gtest/gtest.h>

#include "dispatch/policy.h"
#include "ops/convert.h"
#include "ops/fill.h"
#include "ops/matmul.h"
#include "ops/pool2d.h"

namespace plumb {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

// One chain of 360,000 tenths is off by more than a thousandth.
TEST(LongSums, OfLargeWindowsStayAccurate) {
  const DeviceScope on(kDevice);
  for (const Layout layout : kPublicLayouts) {
    const Tensor x = to(full(Shape{1, 2, 600, 600}, 0.1, DType::kF32), layout);
    EXPECT_NEAR(to(avg_pool2d(x, {.kernel = 600}), Device()).at({0, 1, 0, 0}), 0.1, 1e-6) << to_string(layout);
  }
}

// As many tiles as fill the device, so that only the length of its sums is a reason to split them.
TEST(LongSums, OfDeepProductsStayAccurate) {
  const DeviceScope on(kDevice);
  const PolicyScope own({.algorithm = algorithm_id("gemm")});
  const Tensor y =
      to(matmul(full(Shape{130, 40000}, 0.1, DType::kF32), full(Shape{40000, 33}, 1, DType::kF32)), Device());
  EXPECT_NEAR(y.at({129, 32}), 4000, 0.2);
}

}  // namespace
}  // namespace plumb
