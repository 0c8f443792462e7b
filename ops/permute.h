// Dimensions in another order.
#pragma once

#include "../core/dims.h"
#include "../core/tape.h"

namespace plumb {

/// Reorders dimensions: dimension d of the result is dimension dims[d] of x; negative ones count from the end.
/// Row-major x of any rank and dtype; memory is shared where all elements stay in their order. Keeps nothing. Throws if
/// dims does not name every dimension once, and on an x in another layout (convert with to(layout) first).
Tensor permute(const Tensor& x, const Dims& dims);

}  // namespace plumb
