// Winograd's kernels on tensors in bf16: the arithmetic is that of f32, and results are rounded once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/grad.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

Tensor bf16(const Shape& s, uint64_t seed, Layout layout = Layout::kNchw) {
  return random_tensor(TensorSpec(s, DType::kBf16, layout), seed);
}

struct Gradients {
  Tensor y, dx, dw;
};
Gradients of(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& dy, const Conv2dParams& params) {
  const Tensor from = x.detached().require_grad(), by = w.detached().require_grad();
  const Tensor y = conv2d(from, by, b, params);
  const TensorList d = grad(y, {from, by}, dy);
  return {y.detached(), d[0], d[1]};
}

// How far a result in bf16 is from that in f32, beyond the half unit of one rounding, as a share of the largest
// element. The compiler may contract the sums of two instances of a kernel in other ways, so that they differ by
// roundings of f32.
float excess_over_one_rounding(const Tensor& narrow, const Tensor& wide) {
  const Tensor got = to(narrow, DType::kF32);
  const std::span<const float> g = got.data<float>(), w = wide.data<float>();
  float most = 0, largest = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    if (!std::isfinite(g[i]) || !std::isfinite(w[i])) return std::numeric_limits<float>::infinity();
    const float half = w[i] == 0 ? 0 : std::ldexp(1.0f, std::ilogb(w[i]) - 8);
    most = std::max(most, std::abs(g[i] - w[i]) - half);
    largest = std::max(largest, std::abs(w[i]));
  }
  return most / largest;
}

// Channels of no whole vector, one and several; tiles inside and at the edges; no padding, and more than a window's.
TEST(WinogradBf16, IsThatOfF32RoundedOnce) {
  uint64_t seed = 0;
  for (const char* algorithm : {"winograd_f2x2", "winograd_f4x4"}) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      for (const auto& [channels, outputs, side] : {std::array{3, 10, 8}, {16, 16, 5}, {33, 20, 13}, {64, 40, 9}}) {
        for (const int32_t padding : {1, 3}) {
          SCOPED_TRACE(message("{} {} to {}, {}x{}, padding {}", algorithm, channels, outputs, side, side, padding));
          const Conv2dParams params{.padding = padding, .activation = Activation::kRelu};
          const int64_t out = side + 2 * padding - 2;
          const Tensor x = bf16({2, channels, side, side}, ++seed, layout), w = bf16({outputs, channels, 3, 3}, ++seed);
          const Tensor b = bf16({outputs}, ++seed), dy = bf16({2, outputs, out, out}, ++seed, layout);
          const auto wide = [](const Tensor& t) { return to(t, DType::kF32); };
          const KernelLog log;
          const Gradients narrow = of(x, w, b, dy, params);
          EXPECT_TRUE(log.has(std::string("conv2d_forward:") + algorithm));
          const Gradients expected = of(wide(x), wide(w), wide(b), wide(dy), params);
          EXPECT_TRUE(bitwise_equal(narrow.y, to(expected.y, DType::kBf16)));
          EXPECT_TRUE(bitwise_equal(narrow.dx, to(expected.dx, DType::kBf16)));
          EXPECT_LE(excess_over_one_rounding(narrow.dw, expected.dw), 16 * 0x1p-24);
        }
      }
    }
  }
}

// The adjoint adds up what overlaps in dx, which in bf16 would be rounded each time.
TEST(WinogradBf16, HasNoAdjoint) {
  const auto name = [](DType dtype) {
    const PolicyScope scope({.algorithm = algorithm_id("winograd_f2x2")});
    const TensorSpec dy({2, 16, 2, 2}, dtype, Layout::kNhwc), w({16, 16, 3, 3}, dtype);
    return prepare<Conv2dBackwardInput>({}, {dy, w}, {TensorSpec({2, 16, 4, 4}, dtype, Layout::kNhwc)})
        ->kernel->info()
        .name;
  };
  EXPECT_NE(name(DType::kF32).find("adjoint"), std::string::npos);
  EXPECT_EQ(name(DType::kBf16).find("adjoint"), std::string::npos);
}

}  // namespace
}  // namespace plumb::test
