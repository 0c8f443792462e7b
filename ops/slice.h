// Cutting a part out of a tensor, and padding a tensor to a larger one: each is the other's gradient.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The part of x with shape `extents` that starts at element `begin`: y[i] = x[begin + i]. Any rank, dtype and layout;
/// y has the same. x itself if the part is all of it. Keeps nothing. Throws if the part does not lie within x; a
/// negative start does not count from the end.
Tensor slice(const Tensor& x, const Shape& begin, const Shape& extents);
/// A tensor of shape `extents` that contains x from element `begin` on, and `value` elsewhere: y[begin + i] = x[i]. Any
/// rank, dtype and layout; y has the same. x itself if it fills y. Keeps nothing. Throws if x does not fit.
Tensor pad(const Tensor& x, const Shape& begin, const Shape& extents, double value = 0);

}  // namespace plumb
