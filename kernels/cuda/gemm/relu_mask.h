// Masks of bits beside a product that has no place for them: written after it, or applied to it.
#pragma once

#include <memory>

#include "dispatch/kernel.h"

namespace plumb::cuda {

/// `product`, which writes y as output 0, and then output 1: the mask of y > 0, as LinearForwardMask has it.
std::unique_ptr<Kernel> then_write_mask(std::unique_ptr<Kernel> product, const TensorSpec& y, Device device);
/// `product`, which writes dx as output 0, and then zeros in it where the mask, which is input 2, has none.
std::unique_ptr<Kernel> then_apply_mask(std::unique_ptr<Kernel> product, const TensorSpec& dx, Device device);

}  // namespace plumb::cuda
