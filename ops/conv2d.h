// Convolution in two dimensions.
#pragma once

#include "../core/tape.h"
#include "../kernels/conv2d.h"

namespace plumb {

/// The spec of y. Throws if x, w and the attributes do not fit together.
TensorSpec conv2d_output(const Conv2dParams& p, const TensorSpec& x, const TensorSpec& w);

/// y = x * w + b (cross-correlation, as in every framework), then the activation of p.
/// x (N, IC, IH, IW) in any layout, w (OC, IC / groups, KH, KW) row-major, b (OC) or empty; y (N, OC, OH, OW) in x's
/// layout. f32, bf16, f64. Backward keeps x and w, each only if the other's gradient is needed, and y if there is an
/// activation.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Conv2dParams& p = {});
inline Tensor conv2d(const Tensor& x, const Tensor& w, const Conv2dParams& p = {}) { return conv2d(x, w, Tensor(), p); }

/// The gradient with respect to x: dx of the spec `x`, from dy and w. dy is the gradient of the plain convolution: an
/// activation in p is ignored. Throws unless dy has conv2d_output's spec.
Tensor conv2d_backward_input(const Tensor& dy, const Tensor& w, const Conv2dParams& p, const TensorSpec& x);
/// The gradient with respect to w: dw of the spec `w`, from dy and x, likewise.
Tensor conv2d_backward_weight(const Tensor& dy, const Tensor& x, const Conv2dParams& p, const TensorSpec& w);

}  // namespace plumb
