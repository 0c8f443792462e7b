// The fully connected layer: y = x w^T + b with w as (OUT, IN), the three products of a training step.
#pragma once

#include "kernels/conv2d.h"

namespace plumb {

struct LinearParams {
  Activation activation = Activation::kNone;
  int32_t reserved = 0;
};

/// y (N, OUT) from {x, w} or {x, w, b}: x (N, IN), w (OUT, IN), b (OUT).
struct LinearForward {
  static constexpr char kName[] = "linear_forward";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// dx (N, IN) from {dy, w}.
struct LinearBackwardInput {
  static constexpr char kName[] = "linear_backward_input";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// dw (OUT, IN) from {dy, x}.
struct LinearBackwardWeight {
  static constexpr char kName[] = "linear_backward_weight";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

}  // namespace plumb
