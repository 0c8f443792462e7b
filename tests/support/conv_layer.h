// Layers of convolutions, and their three products by one algorithm.
#pragma once

#include <string>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "ops/conv2d.h"
#include "tests/support/compare.h"

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

}  // namespace plumb::test
