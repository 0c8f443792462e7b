// A border around images.
#pragma once

#include "../core/tape.h"
#include "../kernels/window.h"

namespace plumb {

/// x (N, C, H, W) with `padding` rows and columns of `value` around it, {all}, {height, width} or {top, bottom, left,
/// right}: y (N, C, H + top + bottom, W + left + right). Any dtype and layout; y has the same. Zero padding returns x
/// itself. Keeps nothing. Throws on another rank and on negative padding (cut with slice).
Tensor pad2d(const Tensor& x, const Sides<int64_t>& padding, double value = 0);

}  // namespace plumb
