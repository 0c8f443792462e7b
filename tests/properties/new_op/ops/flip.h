// Reversing rows.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The elements of x along its last dimension in reverse order. Row-major x of any rank but 0, f32, bf16 or f64. Keeps
/// nothing. Throws on other ranks, layouts and dtypes.
Tensor flip(const Tensor& x);

}  // namespace plumb
