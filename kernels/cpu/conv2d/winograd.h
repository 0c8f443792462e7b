// Convolution by Winograd's minimal filtering (Lavin and Gray, 2015): our own kernels for 3x3 windows, in plain NHWC.
#pragma once

#include "kernels/conv2d.h"

namespace plumb::cpu {

/// y (N, OC, OH, OW) from {x, w} or {x, w, b} by F(m x m, 3x3), m = 2 or 4: f32, x and y NHWC, w plain (OC, IC, 3, 3),
/// stride, dilation and groups 1, any channels and any padding; adds b and applies params.activation. Wants w packed.
/// The order of each sum is the same for every number of threads. Numbers are finite: an infinity or a NaN in x makes
/// NaNs of its whole tile. Null if it does not apply.
std::unique_ptr<Kernel> winograd_forward(const Problem<Conv2dParams>& p, int m);

/// dx from {dy, w}: the forward kernel on dy, with w rotated by 180 degrees and its channels swapped; or the adjoint of
/// the forward algorithm, if that has fewer tiles. Conditions as in winograd_forward; ignores params.activation. Null
/// if it does not apply.
std::unique_ptr<Kernel> winograd_backward_input(const Problem<Conv2dParams>& p, int m);

/// dw from {dy, x} by F(3x3, m x m), m = 2 or 4, from tiles of m x m elements of dy. Conditions as in winograd_forward.
/// The order of the sums depends only on p.threads. Null if it does not apply.
std::unique_ptr<Kernel> winograd_backward_weight(const Problem<Conv2dParams>& p, int m);

}  // namespace plumb::cpu
