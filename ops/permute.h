// Dimensions in another order.
#pragma once

#include "../core/dims.h"
#include "../core/tape.h"

namespace plumb {

/// The elements with dimension d of the result being dimension dims[d] of x; negative ones count from the end.
/// Row-major x of any rank and dtype; x itself if the order is the same. Keeps nothing. Throws if dims does not name
/// every dimension once, and for an x in another layout (convert with to(layout) first).
Tensor permute(const Tensor& x, const Dims& dims);

}  // namespace plumb
