// A wrapper for kernels of oneDNN that lose NaN or infinity.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Which values a kernel computes correctly.
enum class Takes { kFinite, kMinusInfinity };  // finite values; or these and -infinity

/// Runs `kernel` if it takes every element of input number `input` (f32 or bf16), else `own`, which computes the same.
/// The check reads the input once more. Null if `kernel` is null.
std::unique_ptr<Kernel> where_finite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input,
                                     const TensorSpec& spec, Takes takes = Takes::kFinite);

}  // namespace plumb::cpu
