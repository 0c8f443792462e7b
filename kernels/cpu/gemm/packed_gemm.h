// Products of large matrices: both operands are packed into panels that fit in the caches, and blocks of c are kept in
// registers (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
#pragma once

#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// The product in f32, with a ReLU on its result if `relu`; null for other dtypes. Batches may be broadcast. Sums do
/// not depend on the number of threads.
std::unique_ptr<Kernel> packed_gemm_kernel(const Product& p, bool relu = false);

}  // namespace plumb::cpu
