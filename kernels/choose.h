// Choosing among candidates: by order, by measuring, or by name.
#pragma once

#include "cache.h"

namespace plumb::detail {

/// Prepares the candidate that the choice of `p` picks. Throws a sentence when there is none.
std::unique_ptr<Kernel> choose_kernel(const Prepared& p);

}  // namespace plumb::detail
