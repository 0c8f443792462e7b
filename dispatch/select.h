// Choosing among candidates: by order, by measuring, or by name.
#pragma once

#include <string_view>

#include "kernel_cache.h"

namespace plumb::detail {

/// Prepares the candidate that the policy of `p` picks. Throws if there is none.
std::unique_ptr<Kernel> select_kernel(const PreparedKernel& p);

/// Whether any kernel that was prepared so far is of this name or family.
bool was_chosen(std::string_view algorithm);

}  // namespace plumb::detail
