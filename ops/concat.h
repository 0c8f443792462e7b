// Joining tensors.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The tensors one behind the other along `dim` (negative: counted from the end): the extent of y there is the sum of
/// theirs, the others are the same. Any rank, dtype and layout, the same for all, which y has as well; the tensor
/// itself if there is one. Keeps nothing. Throws on an empty list, and on tensors that do not fit together.
Tensor concat(std::span<const Tensor> x, int dim);
inline Tensor concat(std::initializer_list<Tensor> x, int dim) {
  return concat(std::span<const Tensor>(x.begin(), x.size()), dim);
}

}  // namespace plumb
