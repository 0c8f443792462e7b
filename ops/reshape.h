// The same elements with another shape.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The same elements with another shape of equal size. Free: memory is shared. Only for row-major tensors; throws on
/// other layouts, where it would change the meaning (convert with to(layout) first). Keeps nothing.
Tensor reshape(const Tensor& x, const Shape& shape);
/// The same for extents of which one may be -1: it is computed from the others.
Tensor reshape(const Tensor& x, std::initializer_list<int64_t> extents);
/// (N, ...) to (N, rest) in row-major order. A tensor in another layout is first converted by a separate op.
Tensor flatten(const Tensor& x);

}  // namespace plumb
