// Layer normalisation (Ba, Kiros, Hinton: Layer Normalization, 2016).
#pragma once

#include "../core/tape.h"
#include "../kernels/layer_norm.h"

namespace plumb {

/// The spec of the mean and of the inverse deviation of x normalised over its last p.dims dimensions: x's shape with
/// these of extent 1, row-major, f32 for bf16 x, else of x's dtype. Throws unless x is floating, has these dimensions
/// and elements in them, and epsilon is not negative.
TensorSpec layer_norm_statistics(const LayerNormParams& p, const TensorSpec& x);

/// y = (x - mean) / sqrt(var + epsilon) w + b, with mean and (biased) variance over the last dimensions of x: those
/// that w, or b without it, has. x: any shape and layout (other than row-major is converted, and y back), f32, bf16 or
/// f64. w and b have the shape of x's last dimensions, row-major, f32 for bf16 x, else of x's dtype; either may be
/// empty. By our own kernels, f32 and f64 do not depend on the number of threads. Keeps x, w and the statistics. Throws
/// as layer_norm_statistics does, on parameters of another spec, and if both are empty.
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b = Tensor(), double epsilon = 1e-5);
/// The same without w and b, over the last `dims` dimensions.
Tensor layer_norm(const Tensor& x, int dims = 1, double epsilon = 1e-5);

}  // namespace plumb
