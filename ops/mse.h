// The loss of regression.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The mean of (x - y)^2 over all elements, of shape (). x and y are of one spec: nothing is broadcast. f32, f64 or
/// bf16; for bf16 squared, averaged and returned in f32. Keeps x - y. Throws on different specs and on no elements.
Tensor mse(const Tensor& x, const Tensor& y);

}  // namespace plumb
