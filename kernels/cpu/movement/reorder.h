// oneDNN's reorder beside our own kernels that move elements.
#pragma once

#include "kernels/cpu/offer.h"

namespace plumb::cpu {

/// The offer to write y from the elements of x at `strides`, by the dimensions of y: in another order, in another dtype
/// (f32 and bf16), or both. Empty for other dtypes.
Offer reorder_offer(const TensorSpec& x, const Strides& strides, const TensorSpec& y);

}  // namespace plumb::cpu
