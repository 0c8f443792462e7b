// Tensors of random numbers (core/random.h).
#pragma once

#include "../core/tensor.h"

namespace plumb {

/// Numbers from U[low, high), rounded to the dtype; integers are whole numbers from [low, high], which lie within 32
/// bits. Element i in the order of memory depends on the seed alone, on every device. Made on the thread's device
/// (DeviceScope). Throws on an empty or infinite range, and while a step is captured.
Tensor uniform(const TensorSpec& spec, double low, double high, uint64_t seed);
/// The same for numbers from N(mean, deviation^2) of a floating dtype, by Box-Muller. Throws on a negative deviation.
Tensor normal(const TensorSpec& spec, double mean, double deviation, uint64_t seed);

}  // namespace plumb
