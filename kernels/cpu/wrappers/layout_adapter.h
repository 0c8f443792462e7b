// Work on tensors of one layout by a kernel for another, the conversions counted.
#pragma once

#include <span>

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Runs `kernel`, prepared for operands `in` and a result `out`, on operands and a result in other layouts: converts
/// what differs from `given_in` and `given_out` on the way in and out. Null if `kernel` is null.
std::unique_ptr<Kernel> layout_adapter(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in,
                                       const TensorSpec& out, std::span<const TensorSpec> given_in,
                                       const TensorSpec& given_out);

}  // namespace plumb::cpu
