// Pooling in two dimensions.
#pragma once

#include "../core/tape.h"
#include "../kernels/pool2d.h"

namespace plumb {

/// The spec of y for an x (N, C, IH, IW). Throws if x is not of rank 4 or not floating, if a kernel size or stride is
/// not positive, if a padding is negative or not smaller than the window, and if the window is larger than the padded
/// x.
TensorSpec pool2d_output(const char* op, const Pool2dParams& p, const TensorSpec& x);

/// The maximum of each window of x (N, C, IH, IW), in any layout, f32, bf16 or f64; NaN if the window has one. Padding
/// is never the maximum. The gradient goes to the first of equal maxima. Keeps the positions of the maxima, one byte
/// each (four if the window has more than 255 elements). Ignores params.count_include_pad.
Tensor max_pool2d(const Tensor& x, const Pool2dParams& params = {});

/// The mean of each window of x (N, C, IH, IW), in any layout, f32, bf16 or f64. Padding is zeros, which count in the
/// divisor only if params.count_include_pad is 1. Keeps nothing.
Tensor avg_pool2d(const Tensor& x, const Pool2dParams& params = {});

/// The mean over each channel of x (N, C, H, W), as (N, C, 1, 1) in x's layout. Keeps nothing.
Tensor global_avg_pool2d(const Tensor& x);

}  // namespace plumb
