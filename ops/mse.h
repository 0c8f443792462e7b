// The mean squared error, a loss for regression.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The mean of (x - y)^2 over all elements, of shape (). x and y must have one spec: nothing broadcasts. f32, f64 or
/// bf16; for bf16, differences, squares, mean and result are f32. Keeps x and y. Throws on different specs and if there
/// are no elements.
Tensor mse(const Tensor& x, const Tensor& y);

}  // namespace plumb
