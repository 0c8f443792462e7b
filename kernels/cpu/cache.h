// The processor's caches.
#pragma once

#include <cstdint>

namespace plumb::cpu {

/// What a core's second-level cache holds, as the system says.
int64_t l2_bytes();

}  // namespace plumb::cpu
