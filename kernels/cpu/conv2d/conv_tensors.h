// A convolution's three tensors, whichever of them is the result.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

struct ConvTensors {
  TensorSpec x, w, y;
  bool has_bias;
  Conv2dParams params;
  MathMode math;

  /// Of y from {x, w} or {x, w, b}, dx from {dy, w}, or dw from {dy, x}.
  ConvTensors(InnerProduct which, const Problem<Conv2dParams>& p)
      : x(which == InnerProduct::kForward         ? p.in[0]
          : which == InnerProduct::kBackwardInput ? p.out[0]
                                                  : p.in[1]),
        w(which == InnerProduct::kBackwardWeight ? p.out[0] : p.in[1]),
        y(which == InnerProduct::kForward ? p.out[0] : p.in[0]),
        has_bias(which == InnerProduct::kForward && p.in.size() == 3),
        params(p.params),
        math(p.math) {}

  bool is_empty() const { return !x.numel() || !w.numel() || !y.numel(); }
};

}  // namespace plumb::cpu
