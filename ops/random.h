// Tensors of random numbers (core/random.h).
#pragma once

#include "../core/tensor.h"

namespace plumb {

/// Numbers from U[low, high) of 2^24 that lie evenly (f64 has the numbers of f32), rounded to the dtype: bf16 may round
/// to high itself, as one in 512 of [0, 1) does. Low alone if both are equal. For integers whole numbers from [low,
/// high], which must lie within 32 bits: each of them is drawn. Element i in memory order depends only on the seed, on
/// every device. The tensor is on the thread's device (DeviceScope). Throws on an empty or infinite range, and while a
/// step is captured.
Tensor uniform(const TensorSpec& spec, double low, double high, uint64_t seed);
/// The same for numbers from N(mean, deviation^2), by Box-Muller; floating dtypes only. Throws on a negative deviation.
Tensor normal(const TensorSpec& spec, double mean, double deviation, uint64_t seed);

}  // namespace plumb
