// Host memory from the system.
#pragma once

#include <cstddef>

namespace plumb::detail {

// Under AddressSanitizer, blocks are neither cached nor rounded up, so that it sees every use after a release and every
// access beyond the end.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kKeepsBlocks = false;
#else
inline constexpr bool kKeepsBlocks = true;
#endif

/// 256-byte aligned memory, in huge pages if the block is large; null when the system has no more.
void* system_get(size_t bytes);
void system_put(void* block, size_t bytes);

}  // namespace plumb::detail
