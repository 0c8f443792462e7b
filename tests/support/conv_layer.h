// Layers of convolutions, and their three products by one algorithm.
#pragma once

#include <random>
#include <string>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "ops/conv2d.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {

struct ConvLayer {
  Shape x, w;
  Conv2dParams p{};
  bool bias = false;
};

inline std::string describe(const ConvLayer& l) {
  return message("x {} w {} stride {} {} dilation {} {} padding {} {} {} {} groups {}", l.x, l.w, l.p.stride[0],
                 l.p.stride[1], l.p.dilation[0], l.p.dilation[1], l.p.padding[0], l.p.padding[1], l.p.padding[2],
                 l.p.padding[3], l.p.groups);
}

/// The largest that random_layer draws; of a group, outputs also the least, and `beyond`: pixels beyond a window.
struct ConvLimits {
  int images, least_outputs, outputs, channels, window, beyond, stride, dilation, padding;
};
inline ConvLayer random_layer(std::mt19937& engine, const ConvLimits& most) {
  const auto draw = [&](int low, int high) {
    return static_cast<int32_t>(low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1)));
  };
  ConvLayer l;
  l.p.groups = draw(0, 3) ? 1 : draw(2, 3);
  for (int i = 0; i < 2; ++i) {
    l.p.stride[i] = draw(1, most.stride);
    l.p.dilation[i] = draw(1, most.dilation);
  }
  for (int32_t& p : l.p.padding) p = draw(0, most.padding);
  const int64_t kh = draw(1, most.window), kw = draw(1, most.window);
  const int64_t ih = draw(0, most.beyond) + (kh - 1) * l.p.dilation[0] + 1,
                iw = draw(0, most.beyond) + (kw - 1) * l.p.dilation[1] + 1;
  l.w = Shape{l.p.groups * draw(most.least_outputs, most.outputs), draw(1, most.channels), kh, kw};
  l.x = Shape{draw(1, most.images), l.p.groups * l.w[1], ih, iw};
  l.bias = draw(0, 1) == 1;
  if (draw(0, 1)) l.p.activation = Activation::kRelu;
  return l;
}

/// y, dx and dw of random numbers or small integers, the same for every algorithm and layout.
struct ConvResults {
  Tensor y, dx, dw;
  ConvResults(const ConvLayer& l, const char* algorithm, Layout layout, DType dtype, bool integers) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    const auto make = [&](const TensorSpec& s, uint64_t seed) {
      return integers ? small_integers(s, seed, 2) : random_tensor(s, seed);
    };
    const Tensor x = make(TensorSpec(l.x, dtype, layout), 1), w = make(TensorSpec(l.w, dtype), 2);
    const Tensor b = make(TensorSpec(Shape{l.w[0]}, dtype), 3);
    const TensorSpec ys = conv2d_output(l.p, x.spec(), w.spec());
    const Tensor dy = make(ys, 4);
    y = l.bias ? run<Conv2dForward>(l.p, {x, w, b}, ys) : run<Conv2dForward>(l.p, {x, w}, ys);
    dx = run<Conv2dBackwardInput>(l.p, {dy, w}, x.spec());
    dw = run<Conv2dBackwardWeight>(l.p, {dy, x}, w.spec());
  }
};

/// Holds an algorithm, which must take y, dx if `has_dx` and dw if `has_dw`, and no others, against loops over every
/// product, bit for bit: whole numbers have exact sums.
inline void expect_exact(const ConvLayer& l, const char* algorithm, Layout layout, bool has_dx = true,
                         bool has_dw = true, DType dtype = DType::kF32) {
  SCOPED_TRACE(describe(l) + " " + to_string(layout));
  const KernelLog log;
  const ConvResults got(l, algorithm, layout, dtype, true);
  EXPECT_TRUE(log.has(std::string("conv2d_forward:") + algorithm));
  EXPECT_EQ(log.has(std::string("conv2d_backward_input:") + algorithm), has_dx);
  EXPECT_EQ(log.has(std::string("conv2d_backward_weight:") + algorithm), has_dw);
  const ConvResults expected(l, "reference", layout, dtype, true);
  EXPECT_TRUE(equal(got.y, expected.y));
  EXPECT_TRUE(equal(got.dx, expected.dx));
  EXPECT_TRUE(equal(got.dw, expected.dw));
}

/// That an algorithm, which must take both, gives the same y and dx with any number of threads.
inline void expect_same_layer_with_any_threads(const ConvLayer& l, const char* algorithm, DType dtype = DType::kF32) {
  const KernelLog log;
  expect_same_with_any_threads([&] {
    const ConvResults r(l, algorithm, Layout::kNhwc, dtype, false);
    return std::vector{r.y, r.dx};
  });
  EXPECT_TRUE(log.has(std::string("conv2d_forward:") + algorithm));
  EXPECT_TRUE(log.has(std::string("conv2d_backward_input:") + algorithm));
}

}  // namespace plumb::test
