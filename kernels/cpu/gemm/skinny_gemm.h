// Products with few rows, as for a batch of one: their cost is reading or writing the large matrix w once.
#pragma once

#include "kernels/cpu/gemm/product.h"
#include "kernels/linear.h"

namespace plumb::cpu {

/// With more rows than this, a blocked product is faster.
inline constexpr int64_t kMostThinRows = 64;

/// Whether the time of a product with so many rows (for a convolution: pixels) is that of streaming w: few rows, and a
/// w larger than a core's own caches. If so, a heuristic tries skinny_gemm first.
inline bool is_passage(int64_t rows, const TensorSpec& w) { return rows <= 8 && w.bytes() >= size_t{3} << 20; }

// All matrices are row-major and f32. Work is spread over threads; sums do not depend on the number of threads.

/// y (m, n) = a (m, k) w^T for w (n, k), plus a bias of n numbers unless `bias` is null.
void skinny_gemm_forward(float* y, const float* a, const float* w, const float* bias, int64_t m, int64_t n, int64_t k);
/// y (m, k) = a (m, n) w for w (n, k).
void skinny_gemm_backward_input(float* y, const float* a, const float* w, int64_t m, int64_t n, int64_t k);
/// w (n, k) = a^T b for a (m, n) and b (m, k); a large w is written past the caches.
void skinny_gemm_backward_weight(float* w, const float* a, const float* b, int64_t m, int64_t n, int64_t k);

/// dx (m, k) = dy (m, n) w and dw (n, k) = dy^T x in one pass over w and dw, for w (n, k) and x (m, k); m is from 1 to
/// kMostJointRows.
void skinny_gemm_backward(float* dx, float* dw, const float* dy, const float* x, const float* w, int64_t m, int64_t n,
                          int64_t k);

/// linear's products for x (m, k), w (n, k) and y (m, n). Null if m is too large or the dtype is not f32.
std::unique_ptr<Kernel> skinny_linear(InnerProduct which, const TensorSpec& x, const TensorSpec& w, bool bias);

/// Both products of linear's backward in one pass. Null for more than kMostJointRows rows, or if not f32.
std::unique_ptr<Kernel> skinny_linear_backward(const TensorSpec& x, const TensorSpec& w);

}  // namespace plumb::cpu
