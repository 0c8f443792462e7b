// Runs a kernel for one layout on tensors of another, and counts the conversions.
#pragma once

#include <span>

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Runs `kernel`, prepared for operands `in` and result `out`, on operands `given_in` and result `given_out` in other
/// layouts: converts those that differ, before and after. Null if `kernel` is null.
std::unique_ptr<Kernel> layout_adapter(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in,
                                       const TensorSpec& out, std::span<const TensorSpec> given_in,
                                       const TensorSpec& given_out);

}  // namespace plumb::cpu
