// Masks of bits beside a product that has no place for them: written after it, or applied to it.
#pragma once

#include <memory>

#include "dispatch/kernel.h"

namespace plumb::cuda {

/// Writes as output 1 the mask of y > 0, which is output 0, as LinearForwardMask has it. Null for dtypes that no
/// product has.
std::unique_ptr<Kernel> relu_mask(const TensorSpec& y, Device device);
/// Writes zeros in dx, which is output 0, where the mask, which is input 2, has none.
std::unique_ptr<Kernel> apply_mask(const TensorSpec& dx, Device device);

}  // namespace plumb::cuda
