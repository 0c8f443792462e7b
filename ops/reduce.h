// Reductions, and their inverse.
#pragma once

#include "../core/dims.h"
#include "../core/tape.h"

namespace plumb {

/// The sum over `dims`; x of any shape and layout, f32, f64 or bf16 (accumulated in f32 or wider). With keepdims the
/// reduced dimensions stay with extent 1, without it they go; a rank-4 x in another layout than nchw whose result has
/// lower rank gives a row-major result. Keeps nothing.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdims = false);
/// The mean over `dims`; an empty mean is refused.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdims = false);
/// The maximum over `dims` (NaN if there is one); an empty maximum is refused. The gradient is shared equally among
/// equal maxima. Keeps x and y.
Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdims = false);
/// The index of the maximum along one dimension, or over all elements in row-major order; i64, the first of equals. No
/// gradient.
Tensor argmax(const Tensor& x, const Dims& dims = {}, bool keepdims = false);

/// x summed over the dimensions along which it was broadcast from `to`: the gradient of broadcasting. x itself if
/// nothing was broadcast. Throws if `to` does not broadcast to x's shape.
Tensor sum_to(const Tensor& x, const TensorSpec& to);
/// x broadcast to a larger shape (aligned at the right), in the layout of `to`.
Tensor expand(const Tensor& x, const TensorSpec& to);

}  // namespace plumb
