// Tensors of one value.
#pragma once

#include "core/tensor.h"

namespace plumb {

/// Every element is `value`. Any spec.
Tensor full(const TensorSpec& spec, double value);
inline Tensor zeros(const TensorSpec& spec) { return full(spec, 0); }
inline Tensor ones(const TensorSpec& spec) { return full(spec, 1); }
inline Tensor zeros_like(const Tensor& x) { return full(x.spec(), 0); }
inline Tensor ones_like(const Tensor& x) { return full(x.spec(), 1); }

}  // namespace plumb
