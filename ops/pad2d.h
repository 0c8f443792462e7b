// A border around images.
#pragma once

#include <array>

#include "../core/tape.h"

namespace plumb {

/// x (N, C, H, W) with `padding` = {top, bottom, left, right} rows and columns of `value` around it: y (N, C, H + top +
/// bottom, W + left + right). Any dtype and layout, which y has as well; x itself without padding. Keeps nothing.
/// Throws on another rank and on negative padding (cut with slice).
Tensor pad2d(const Tensor& x, const std::array<int64_t, 4>& padding, double value = 0);

}  // namespace plumb
