// How exact a convolution was: what stands beside every figure of a Winograd kernel.
#pragma once

#include "dispatch/kernel_cache.h"

namespace plumb::measure {

/// The largest distance between elements of a convolution's result and the same sums in f64, in units of the largest of
/// these sums; of some hundred elements, spread over the result. `in` are the plain inputs of a run of `p`, `out` is
/// what it wrote. Only for conv2d's kernels.
double conv2d_error(const PreparedKernel& p, std::span<void* const> in, const void* out);

}  // namespace plumb::measure
