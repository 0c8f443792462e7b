// Choosing among candidates: by order, by measuring, or by name.
#pragma once

#include <string_view>

#include "kernel_cache.h"

namespace plumb::detail {

/// Prepares the candidate that the policy of `p` picks. Throws if there is none.
std::unique_ptr<Kernel> select_kernel(const PreparedKernel& p);

/// Whether any work so far was offered a candidate of this name or family.
bool was_offered(std::string_view algorithm);

}  // namespace plumb::detail
