// The fully connected layer.
#pragma once

#include "../core/tape.h"
#include "../kernels/linear.h"

namespace plumb {

/// y = x w^T + b, then the activation. x (..., IN) row-major, w (OUT, IN), b (OUT) or empty; y (..., OUT). f32, bf16,
/// f64. Backward keeps x and w (and y with an activation, of which a device keeps a mask of bits too), each only if the
/// other's gradient needs it.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = Tensor(), Activation activation = Activation::kNone);

/// The gradient by x (N, IN), from dy (N, OUT) and w. Throws if they do not fit together.
Tensor linear_backward_input(const Tensor& dy, const Tensor& w);
/// The gradient by w (OUT, IN), from dy (N, OUT) and x (N, IN). Throws if they do not fit together.
Tensor linear_backward_weight(const Tensor& dy, const Tensor& x);

}  // namespace plumb
