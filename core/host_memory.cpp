#include "core/host_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "core/memory.h"

namespace plumb::detail {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
size_t pages_of(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

void* system_get(size_t bytes) {
  if constexpr (!kKeepsBlocks) {
    void* exact = nullptr;
    return posix_memalign(&exact, kAlignment, bytes) == 0 ? exact : nullptr;
  }
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, aligned(bytes));
  // Huge pages: fewer faults and fewer misses of the address cache. Mapped here, since malloc would keep blocks of some
  // megabytes when they are given back.
  const size_t whole = pages_of(bytes);
  void* const mapped = mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<char*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage, after = kHugePage - before;
  if (before) munmap(begin, before);
  if (after) munmap(begin + before + whole, after);
  madvise(begin + before, whole, MADV_HUGEPAGE);
  return begin + before;
}

void system_put(void* block, size_t bytes) {
  if (!kKeepsBlocks || bytes < kHugePage) {
    std::free(block);
  } else {
    munmap(block, pages_of(bytes));
  }
}

}  // namespace plumb::detail
