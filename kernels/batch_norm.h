// Batch normalisation over all dimensions except the channels.
#pragma once

#include "../dispatch/kernel.h"
#include "activation.h"

namespace plumb {

/// Attributes of batch_norm. In training, running = (1 - momentum) running + momentum batch.
struct BatchNormParams {
  Real epsilon = 1e-5;
  Real momentum = 0.1;
  int32_t unbiased_running_variance = 1;  ///< 1: the running variance takes the batch's variance times n / (n - 1)
  int32_t train = 1;                      ///< 1: statistics of the batch; 0: running statistics
  Activation activation = Activation::kNone;
  int32_t reserved = 0;
};

/// Training: {y, mean, inv_std} from {x, gamma, beta, running_mean, running_var[, addend]}; the running statistics are
/// written, too. Otherwise {y} from the same. x is (N, C) or (N, C, H, W), the addend of its spec, the others (C);
/// inv_std = 1 / sqrt(var + epsilon). The addend is added before the activation.
struct BatchNormForward {
  static constexpr char kName[] = "batch_norm_forward";
  using Params = BatchNormParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// {dgamma, dbeta} or {dgamma, dbeta, dx} from {dy, x, gamma, mean, spread[, beta]}; spread is inv_std if the forward
/// pass was in training, and the running variance if not. With an activation there is beta: dy is of activation(z),
/// without an addend, and z is computed again from x and the mean, within whose roundings of 0 it may be on either
/// side.
struct BatchNormBackward {
  static constexpr char kName[] = "batch_norm_backward";
  using Params = BatchNormParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
