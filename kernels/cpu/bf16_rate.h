// What a processor's own instructions for bf16 reach at best: a roof for kernels.
#pragma once

#include <cstdint>

namespace plumb::cpu {

/// Multiplies and adds bf16 on the calling thread, by AMX from the first-level cache or by the dot products of AVX-512
/// from registers, in so many rounds. Returns how many operations these were; 0 where the processor has neither.
double multiply_bf16(int64_t rounds);

}  // namespace plumb::cpu
