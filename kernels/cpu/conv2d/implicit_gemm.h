// Convolutions as packed products: the windows of an image are read where they lie, or packed into panels as they are
// needed, so that no matrix of them is ever in memory (Chetlur et al., "cuDNN: Efficient primitives for deep learning",
// 2014).
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// y from {x, w} or {x, w, b}, dx from {dy, w} or dw from {dy, x}: f32, or bf16 (y and dx by AMX), x and y NHWC, w
/// plain, any windows, strides, dilations, paddings and groups; forward adds b and applies the activation. Wants w with
/// its channels innermost. Sums of finite numbers do not depend on the number of threads (zeros of the padding may be
/// multiplied or left out). Null if it does not apply, or gives fewer than four numbers side by side.
std::unique_ptr<Kernel> conv2d_implicit_gemm(InnerProduct which, const Problem<Conv2dParams>& p);

}  // namespace plumb::cpu
