// Products of large matrices by packed panels (packed_product.h).
#pragma once

#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// The product, with a ReLU on its result if `relu`: in f32, and in bf16 (summed in f32) where the processor multiplies
/// that; null otherwise. Batches may be broadcast. Sums do not depend on the number of threads.
std::unique_ptr<Kernel> packed_gemm_kernel(const Product& p, bool relu = false);

}  // namespace plumb::cpu
