// Convolutions in groups of few channels, down to one (depthwise): the lanes of a vector are the channels of whole
// groups.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// y from {x, w} or {x, w, b}, dx from {dy, w} or dw from {dy, x}: f32, x and y NHWC, w plain, any windows, strides,
/// dilations and paddings; groups of as many outputs as inputs, a power of two up to the lanes of a vector, and
/// channels enough to fill one. Forward adds b and applies the activation. Wants w by lanes. Channels of one group
/// never meet those of another, nor the padding: a NaN stays where it is. The sums of y and dx do not depend on the
/// number of threads, that of dw on p.threads alone. Null if it does not apply.
std::unique_ptr<Kernel> conv2d_group_lanes(InnerProduct which, const Problem<Conv2dParams>& p);

}  // namespace plumb::cpu
