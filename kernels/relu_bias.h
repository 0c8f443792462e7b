// The backward pass of a bias and a ReLU behind it, as one kernel.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// {dz, db} from {dy, y}, where y = relu(z) and z = x + b with b (C) along dimension 1 of y (N, C, H, W): dz is dy
/// where y > 0 and 0 elsewhere, db (C) the sums of dz over each channel. Only on devices: there it saves reading dz
/// once more; the host has an elementwise op and a reduction.
struct ReluBiasBackward {
  static constexpr char kName[] = "relu_bias_backward";
  using Params = NoParams;
  static void reference(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
