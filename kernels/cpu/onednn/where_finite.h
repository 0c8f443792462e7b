// A kernel of oneDNN's that loses NaN or infinity.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// What a kernel takes for an ordinary number.
enum class Takes { kFinite, kMinusInfinity };  // the second: that as well

/// `kernel` where it takes every element of input number `input`, of f32 or bf16, and else `own`, which computes the
/// same: the input is read once more. Null if `kernel` is null.
std::unique_ptr<Kernel> where_finite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input,
                                     const TensorSpec& spec, Takes takes = Takes::kFinite);

}  // namespace plumb::cpu
