// oneDNN's reorder as an alternative to our own kernels that move elements.
#pragma once

#include "kernels/cpu/offer.h"

namespace plumb::cpu {

/// Offers to write y from the elements of x at `strides`, given per dimension of y: in another order, in another dtype
/// (f32 and bf16), or both. Empty for other dtypes.
Offer reorder_offer(const TensorSpec& x, const Strides& strides, const TensorSpec& y);

}  // namespace plumb::cpu
