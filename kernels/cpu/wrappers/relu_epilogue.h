// ReLU in place after a kernel that cannot apply it itself.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Runs `kernel` and then max(y, 0) in place on its output y. A NaN stays a NaN, while oneDNN's own ReLU turns it into
/// 0 in some implementations. Null if `kernel` is null.
std::unique_ptr<Kernel> relu_epilogue(std::unique_ptr<Kernel> kernel, const TensorSpec& y);

}  // namespace plumb::cpu
