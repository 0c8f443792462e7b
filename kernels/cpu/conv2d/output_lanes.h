// Convolutions of few channels to some outputs, in groups or not: the lanes of a vector are the outputs of one group.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// y from {x, w} or {x, w, b}, or dx from {dy, w}: f32, x and y NHWC, w plain, any windows, strides, dilations,
/// paddings and groups whose results (outputs for y, inputs for dx) fill half a vector, and whose weights to a vector
/// of results fit into half of a first-level cache. Forward adds b and applies the activation. Wants w by outputs.
/// Channels of one group never meet those of another, nor the padding: a NaN stays where it is. Sums do not depend on
/// the number of threads. Null if it does not apply.
std::unique_ptr<Kernel> conv2d_output_lanes(InnerProduct which, const Problem<Conv2dParams>& p);

}  // namespace plumb::cpu
