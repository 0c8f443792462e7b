// Convolution by Winograd's minimal filtering (Lavin and Gray, 2015): our own kernels for 3x3 windows, in plain NHWC.
#pragma once

#include "kernels/conv2d.h"

namespace plumb::cpu {

/// y (N, OC, OH, OW) from {x, w} or {x, w, b} by F(m x m, 3x3), m = 2 or 4: f32, x and y NHWC, w plain (OC, IC, 3, 3),
/// stride, dilation and groups 1, any channels and any padding; adds b and applies params.activation. Asks for w as a
/// pack. Each output is the same sum in the same order for every number of threads. Null if it does not apply.
std::unique_ptr<Kernel> winograd_forward(const Problem<Conv2dParams>& p, int m);

/// dx from {dy, w}: the forward kernel on dy, with w turned by 180 degrees and its channels exchanged; or, where that
/// has fewer tiles, the adjoint of the forward algorithm. Conditions as in winograd_forward; params.activation is not
/// looked at. Null if it does not apply.
std::unique_ptr<Kernel> winograd_backward_input(const Problem<Conv2dParams>& p, int m);

/// dw from {dy, x} by F(3x3, m x m), m = 2 or 4, from tiles of m x m elements of dy. Conditions as in winograd_forward.
/// The order of the sums depends on p.threads and on nothing else. Null if it does not apply.
std::unique_ptr<Kernel> winograd_backward_weight(const Problem<Conv2dParams>& p, int m);

}  // namespace plumb::cpu
