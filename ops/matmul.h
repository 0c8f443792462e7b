// Matrix products.
#pragma once

#include "../core/tape.h"
#include "../kernels/matmul.h"

namespace plumb {

/// The spec of y. Throws if a and b do not fit together.
TensorSpec matmul_output(const MatmulParams& p, const TensorSpec& a, const TensorSpec& b);

/// y = a b over the last two dimensions, of either after an optional transpose: a (..., M, K), b (..., K, N), y (...,
/// M, N). Leading dimensions are batches and broadcast (extent 1, or missing). Row-major; f32, bf16, f64. Backward
/// keeps a and b, each only if the other's gradient is needed.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

}  // namespace plumb
