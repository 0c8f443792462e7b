// Convolutions in bf16 by AMX, whose tiles are loaded from the images.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// y from {x, w} or {x, w, b}, or dx from {dy, w}: bf16, x and y NHWC, w plain, groups of whole runs of 32 inputs
/// (forward) or outputs (of x), any windows, strides, dilations and paddings with which a core's own cache holds what
/// one row of windows sees; forward adds b and applies the activation. Wants w with its channels innermost. The sums do
/// not depend on the number of threads. Null if it does not apply, or without AMX.
std::unique_ptr<Kernel> conv2d_amx_direct(InnerProduct which, const Problem<Conv2dParams>& p);

}  // namespace plumb::cpu
