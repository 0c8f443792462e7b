// The activation that conv2d and linear fuse.
#pragma once

#include "../core/tape.h"
#include "../kernels/activation.h"

namespace plumb::detail {

/// Throws a sentence that begins with `op` if `a` is none of the enumerators.
void check_activation(const char* op, Activation a);

/// z's value with the gradient edge of the activation on top of z's own: one value, two nodes. The gradient comes from
/// the output, so nothing needs what was before it.
Tensor record_activation(const Tensor& z, Activation a);

}  // namespace plumb::detail
