// Memory of the host, from the system.
#pragma once

#include <cstddef>

namespace plumb::detail {

// Under AddressSanitizer nothing is cached and blocks are not rounded up, so that every use after a release and every
// access beyond the end is seen.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kKeepsBlocks = false;
#else
inline constexpr bool kKeepsBlocks = true;
#endif

/// 256-byte aligned memory, in huge pages where it is large, or null when there is no more.
void* system_get(size_t bytes);
void system_put(void* block, size_t bytes);

}  // namespace plumb::detail
