// Joining tensors.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The tensors joined along `dim` (negative: counted from the end): y's extent there is the sum of theirs, and the
/// other extents must be equal. Any rank, dtype and layout, the same for all and for y. A single tensor is returned as
/// it is. Keeps nothing. Throws on an empty list, and on tensors that do not fit together.
Tensor concat(std::span<const Tensor> x, int dim);
inline Tensor concat(std::initializer_list<Tensor> x, int dim) {
  return concat(std::span<const Tensor>(x.begin(), x.size()), dim);
}

}  // namespace plumb
