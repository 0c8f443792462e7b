// The mean squared error, a loss for regression.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The mean of (x - y)^2 over all elements, of shape (). x and y must have one spec: nothing broadcasts. f32, f64 or
/// bf16; for bf16, squares and mean are in f32, and so is the result. Keeps x - y. Throws on different specs and if
/// empty.
Tensor mse(const Tensor& x, const Tensor& y);

}  // namespace plumb
