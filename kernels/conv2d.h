// Convolution in two dimensions: its parameters and its three kernels.
#pragma once

#include "../dispatch/kernel.h"
#include "activation.h"
#include "window.h"

namespace plumb {

/// Attributes of conv2d. x is (N, IC, IH, IW), w is (OC, IC / groups, KH, KW), y is (N, OC, OH, OW) with
/// OH = (IH + padding[0] + padding[1] - dilation[0] * (KH - 1) - 1) / stride[0] + 1, rounded down, and OW likewise.
struct Conv2dParams {
  Size2d stride = 1;
  Size2d dilation = 1;    ///< 1 is dense
  Padding2d padding = 0;  ///< of zeros: {all}, {height, width} or {top, bottom, left, right}
  int32_t groups = 1;
  Activation activation = Activation::kNone;
};

/// y from {x, w} or {x, w, b}; b is (OC).
struct Conv2dForward {
  static constexpr char kName[] = "conv2d_forward";
  using Params = Conv2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// dx from {dy, w}.
struct Conv2dBackwardInput {
  static constexpr char kName[] = "conv2d_backward_input";
  using Params = Conv2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// dw from {dy, x}.
struct Conv2dBackwardWeight {
  static constexpr char kName[] = "conv2d_backward_weight";
  using Params = Conv2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

}  // namespace plumb
