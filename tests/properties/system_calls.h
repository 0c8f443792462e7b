// What a piece of work asks of the system, and who asks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace plumb::test {

/// Counts of one piece of work, over all threads of the process.
struct SystemCalls {
  int64_t allocations = 0;          ///< malloc and its relatives, operator new: asked for by code of this program
  int64_t library_allocations = 0;  ///< the same, asked for by the code of shared libraries (oneDNN, libgomp)
  int64_t maps = 0;         ///< mmap, munmap, mremap, madvise and sbrk, whoever asks; not those of malloc itself
  int64_t page_faults = 0;  ///< pages that the system had to find, on disk or not
  std::string callers;      ///< of the first of this program's calls: addresses for addr2line, innermost first
};

/// Does the work and counts. One thread at a time; what other threads of the process do is counted too.
SystemCalls system_calls_of(const std::function<void()>& work);

/// For the work itself: the counts from its beginning until now, without the callers.
SystemCalls system_calls_so_far();

}  // namespace plumb::test
