// Conversions between layouts and dtypes, and moves between devices.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The same elements in another layout; x itself if it is in it already, and a tensor on x's memory where the order of
/// the elements is the same in both, as for (N, C, 1, 1). nhwc and chwn are for rank 4. Keeps nothing.
Tensor to(const Tensor& x, Layout layout);
/// The elements rounded to another dtype (floats to nearest even, floats to integers towards zero); x itself if it is
/// of it already. Between floating dtypes it has a gradient. Keeps nothing.
Tensor to(const Tensor& x, DType dtype);
/// The same elements on another device, or x itself if it is there already. To the host it waits. Keeps nothing; throws
/// while a step is captured, whose kernels are all of one device.
Tensor to(const Tensor& x, Device device);

}  // namespace plumb
