// Reductions, and broadcasting, their inverse.
#pragma once

#include "../core/dims.h"
#include "../core/tape.h"

namespace plumb {

/// The sum over `dims`; x of any shape and layout, f32, f64 or bf16 (accumulated in f32 or wider). With keepdims,
/// reduced dimensions keep extent 1; without it they are dropped. If a rank-4 x in nhwc or chwn loses dimensions, the
/// result is row-major. Keeps nothing.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdims = false);
/// The mean over `dims`; throws if there is nothing to average.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdims = false);
/// The maximum over `dims` (NaN if any element is); throws if there are no elements. Equal maxima share the gradient
/// equally. Keeps x and y.
Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdims = false);
/// The index (i64) of the maximum along one dimension, or over all elements in row-major order; the first of equal
/// ones. No gradient.
Tensor argmax(const Tensor& x, const Dims& dims = {}, bool keepdims = false);

/// x summed over the dimensions along which `to` was broadcast to x's shape: the gradient of broadcasting. x itself if
/// nothing was broadcast. Throws if `to` does not broadcast to x's shape.
Tensor sum_to(const Tensor& x, const TensorSpec& to);
/// x broadcast to `to`'s larger shape (aligned at the right), in the layout of `to`.
Tensor expand(const Tensor& x, const TensorSpec& to);

}  // namespace plumb
