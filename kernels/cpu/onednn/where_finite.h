// A kernel of oneDNN's that loses NaN or infinity.
#pragma once

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// `kernel` where every element of input number `input`, of f32 or bf16, is finite, and else `own`, which computes the
/// same: the input is read once more. Null if `kernel` is null.
std::unique_ptr<Kernel> where_finite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input,
                                     const TensorSpec& spec);

}  // namespace plumb::cpu
