// Softmax and its logarithm.
#pragma once

#include "../core/tape.h"
#include "../kernels/softmax.h"

namespace plumb {

/// The parameters of a softmax of x along `dim` (negative: from the end). Throws unless x is floating and has it.
SoftmaxParams softmax_params(const char* op, const TensorSpec& x, int dim, bool log);

/// e^x / sum e^x along `dim`, the maximum subtracted first. x: any shape and layout, f32, bf16 or f64; y of x's spec.
/// Keeps y.
Tensor softmax(const Tensor& x, int dim = -1);
/// log(softmax(x)) = x - log sum e^x, without the loss of small probabilities. Keeps y.
Tensor log_softmax(const Tensor& x, int dim = -1);

/// The gradient of softmax, y (dy - sum dy y), or of log_softmax, dy - e^y sum dy; all of one spec. Keeps dy and y.
Tensor softmax_backward(const Tensor& dy, const Tensor& y, const SoftmaxParams& p);

}  // namespace plumb
