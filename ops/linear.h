// The fully connected layer.
#pragma once

#include "../core/tape.h"
#include "../kernels/linear.h"

namespace plumb {

/// y = x w^T + b, then the activation. x (..., IN) row-major, w (OUT, IN), b (OUT) or empty; y (..., OUT). f32, bf16,
/// f64. Backward keeps x and w, each only if the other's gradient is needed, and y if there is an activation (on a
/// device also a bit mask of y).
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = Tensor(), Activation activation = Activation::kNone);

/// The gradient with respect to x (N, IN), from dy (N, OUT) and w. Throws if they do not fit together.
Tensor linear_backward_input(const Tensor& dy, const Tensor& w);
/// The gradient with respect to w (OUT, IN), from dy (N, OUT) and x (N, IN). Throws if they do not fit together.
Tensor linear_backward_weight(const Tensor& dy, const Tensor& x);

}  // namespace plumb
