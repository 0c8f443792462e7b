// Counting what asks the system for memory.
#pragma once

#include <cstdint>

namespace plumb::bench {

/// Calls of malloc, its relatives, operator new and mmap by the whole process, libraries included. Always 0 under
/// sanitizers.
int64_t allocation_count();

}  // namespace plumb::bench
