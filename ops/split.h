// Cutting a tensor into parts: concat's inverse.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The parts of x along `dim` (negative: counted from the end), of the given extents, which add up to x's. Any rank,
/// dtype and layout, which the parts have as well. Keeps nothing; the gradient of x is one concat, in which parts that
/// nobody used are zeros. Throws if the extents do not add up.
TensorList split(const Tensor& x, std::span<const int64_t> extents, int dim);
inline TensorList split(const Tensor& x, std::initializer_list<int64_t> extents, int dim) {
  return split(x, std::span<const int64_t>(extents.begin(), extents.size()), dim);
}

}  // namespace plumb
