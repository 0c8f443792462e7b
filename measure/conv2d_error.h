// The error of a convolution, which is reported with every time of a Winograd kernel.
#pragma once

#include "dispatch/kernel_cache.h"

namespace plumb::measure {

/// The largest difference between a convolution's result and the same sums in f64, divided by the largest of these
/// sums; over some hundred elements, spread over the result. `in` are the plain inputs of a run of `p`, and `out` is
/// what it wrote. Only for conv2d's kernels.
double conv2d_error(const PreparedKernel& p, std::span<void* const> in, const void* out);

}  // namespace plumb::measure
