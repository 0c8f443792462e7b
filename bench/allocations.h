// Counting what asks the system for memory.
#pragma once

#include <cstdint>

namespace plumb::bench {

/// Calls of malloc, its relatives and operator new by the whole process, libraries included, and requests of the
/// library's own allocator to the system (which are among them). Always 0 under sanitizers.
int64_t allocation_count();

}  // namespace plumb::bench
