// Conversions between layouts and dtypes, and moves between devices.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The same elements in another layout. Returns x itself if it has that layout, and a tensor that shares x's memory if
/// both layouts order the elements alike, as for (N, C, 1, 1). nhwc and chwn are for rank 4. Keeps nothing.
Tensor to(const Tensor& x, Layout layout);
/// The elements rounded to another dtype (floats to nearest even, floats to integers towards zero); x itself if it has
/// that dtype. Has a gradient between floating dtypes. Keeps nothing.
Tensor to(const Tensor& x, DType dtype);
/// The same elements on another device; x itself if it is there. A move to the host waits for the device. Keeps
/// nothing. Throws while a step is captured, since all its kernels run on one device.
Tensor to(const Tensor& x, Device device);

namespace detail {
/// f(x...) for x of one dtype; of f16, in which nothing is computed, rounded from f32.
template <class F, class... X>
Tensor computed(const F& f, const Tensor& first, const X&... rest) {
  if (first.dtype() != DType::kF16) return f(first, rest...);
  return to(f(to(first, DType::kF32), to(rest, DType::kF32)...), DType::kF16);
}
}  // namespace detail

}  // namespace plumb
