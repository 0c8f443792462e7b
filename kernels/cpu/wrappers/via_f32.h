// Runs an f32 kernel on bf16 tensors, where the processor or its library has no fast kernel for bf16.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Widens the bf16 inputs, runs the kernel and rounds its output to bf16. Null if `kernel` is null or wants packs.
std::unique_ptr<Kernel> via_f32(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in, const TensorSpec& out);

}  // namespace plumb::cpu
