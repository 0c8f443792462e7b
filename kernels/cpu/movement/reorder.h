// oneDNN's reorder beside our own kernels that move elements.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Offers to write y from the elements of x at `strides`, by the dimensions of y: in another order, in another dtype
/// (f32 and bf16), or both.
void offer_reorder(const TensorSpec& x, const Strides& strides, const TensorSpec& y, Candidates& candidates);

}  // namespace plumb::cpu
