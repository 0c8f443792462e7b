// A fully connected layer of few rows, through which the weights stream as they lie in memory.
#pragma once

#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// y (m, n) = x (m, k) w^T for w (n, k), plus a bias of n numbers if wanted, and a ReLU: the transposed product, in
/// which lines of x, packed, are the columns, and a few rows of w at a time are read once, from begin to end. In f32,
/// and in bf16 (summed in f32; an even k) where the processor multiplies that. Sums do not depend on the number of
/// threads. Null otherwise, and for more rows than pay.
std::unique_ptr<Kernel> streamed_gemm_kernel(const TensorSpec& x, const TensorSpec& w, bool bias, bool relu);

}  // namespace plumb::cpu
