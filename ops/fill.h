// Tensors of one value.
#pragma once

#include "../core/tensor.h"

namespace plumb {

/// Every element is `value`, rounded to the dtype as to(dtype) does. Any spec. On the thread's device (DeviceScope), as
/// all functions here except zeros_like and ones_like.
Tensor full(const TensorSpec& spec, double value);
/// Every element is 0.
inline Tensor zeros(const TensorSpec& spec) { return full(spec, 0); }
/// Every element is 1.
inline Tensor ones(const TensorSpec& spec) { return full(spec, 1); }
/// The same for a shape and a dtype, row-major: zeros({2, 3}, DType::kF64).
inline Tensor full(const Shape& shape, double value, DType dtype) { return full(TensorSpec(shape, dtype), value); }
inline Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
inline Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
/// With x's spec, on x's device. Throws on an empty tensor.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);

}  // namespace plumb
