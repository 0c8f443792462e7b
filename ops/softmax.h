// Softmax and its logarithm.
#pragma once

#include "../core/tape.h"
#include "../kernels/softmax.h"

namespace plumb {

/// The parameters of a softmax of x along `dim` (negative: from the end). Throws unless x is floating and has that
/// `dim`.
SoftmaxParams softmax_params(const char* op, const TensorSpec& x, int dim, bool log);

/// e^x / sum e^x along `dim`; the maximum is subtracted first. x: any shape and layout, f32, bf16 or f64; y has x's
/// spec. In f32 and bf16 what is below 2^-126 of the largest may be 0. Keeps y.
Tensor softmax(const Tensor& x, int dim = -1);
/// log(softmax(x)) = x - log sum e^x; small probabilities do not underflow. Keeps y.
Tensor log_softmax(const Tensor& x, int dim = -1);

/// The gradient of softmax, y (dy - sum dy y), or of log_softmax, dy - e^y sum dy; all have one spec. Keeps dy and y.
Tensor softmax_backward(const Tensor& dy, const Tensor& y, const SoftmaxParams& p);

}  // namespace plumb
