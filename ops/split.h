// Cutting a tensor into parts: the inverse of concat.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The parts of x along `dim` (negative: counted from the end), with the given extents, which must add up to x's. Any
/// rank, dtype and layout; the parts have the same. Keeps nothing. The gradient of x is one concat, with zeros for
/// unused parts. Throws if the extents do not add up.
TensorList split(const Tensor& x, std::span<const int64_t> extents, int dim);
inline TensorList split(const Tensor& x, std::initializer_list<int64_t> extents, int dim) {
  return split(x, std::span<const int64_t>(extents.begin(), extents.size()), dim);
}

}  // namespace plumb
