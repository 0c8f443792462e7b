// ReLU in place behind a kernel that has none of its own.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// `kernel`, and then max(y, 0) in place of its output y, in which a NaN stays a NaN; oneDNN's own ReLU makes it 0 in
/// some of its implementations. Null if `kernel` is null.
std::unique_ptr<Kernel> relu_epilogue(std::unique_ptr<Kernel> kernel, const TensorSpec& y);

}  // namespace plumb::cpu
