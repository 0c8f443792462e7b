// The same elements under another shape.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The same elements under another shape with as many. Free: memory is shared. Only row-major tensors: in another
/// layout it would change meaning, and throws (convert with to(layout) first). Keeps nothing.
Tensor reshape(const Tensor& x, const Shape& shape);
/// The same for extents of which one may be -1: it follows from the others.
Tensor reshape(const Tensor& x, std::initializer_list<int64_t> extents);
/// (N, ...) to (N, rest) in row-major order. A tensor in another layout is converted first, by an op of its own.
Tensor flatten(const Tensor& x);

}  // namespace plumb
