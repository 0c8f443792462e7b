#include "core/memory.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <numeric>

#include "core/error.h"

namespace plumb {
namespace {

constexpr std::array<const char*, kMemoryClassCount> kNames = {"parameter", "gradient", "activation", "state",
                                                               "workspace", "pack",     "input"};
constexpr size_t kHugePage = size_t{2} << 20;
// Under AddressSanitizer nothing is cached and blocks are not rounded up, so that every use after a release and every
// access beyond the end is seen.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

struct SizeClass {
  int bin;
  size_t bytes;
};
SizeClass size_class(size_t bytes) {
  if (bytes <= kAlignment) return {0, kAlignment};
  const int octave = 63 - std::countl_zero(bytes - 1);  // 2^octave < bytes <= 2^(octave + 1)
  const int quarter = static_cast<int>(((bytes - 1) >> (octave - 2)) & 3);
  return {(octave - 8) * 4 + quarter + 1, (size_t{1} << octave) + (static_cast<size_t>(quarter + 1) << (octave - 2))};
}

size_t pages_of(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

void* system_get(size_t bytes) {
  if constexpr (!kCaching) {
    void* exact = nullptr;
    return posix_memalign(&exact, kAlignment, bytes) == 0 ? exact : nullptr;
  }
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, detail::aligned(bytes));
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
  if (!kCaching || bytes < kHugePage) {
    std::free(block);
  } else {
    munmap(block, pages_of(bytes));
  }
}

}  // namespace

const char* to_string(MemoryClass c) { return kNames[static_cast<size_t>(c)]; }

int64_t MemoryStats::live_total() const { return std::accumulate(live_bytes.begin(), live_bytes.end(), int64_t{0}); }
int64_t MemoryStats::peak_total() const {
  return std::accumulate(at_peak_bytes.begin(), at_peak_bytes.end(), int64_t{0});
}

void Allocator::lock() const {
  while (locked_.test_and_set(std::memory_order_acquire)) {
    while (locked_.test(std::memory_order_relaxed)) __builtin_ia32_pause();
  }
}

void Allocator::account(int64_t bytes, MemoryClass c) {
  const auto i = static_cast<size_t>(c);
  ++stats_.allocations;
  stats_.live_bytes[i] += bytes;
  live_total_ += bytes;
  if (stats_.live_bytes[i] > stats_.peak_bytes[i]) stats_.peak_bytes[i] = stats_.live_bytes[i];
  if (live_total_ > peak_total_) [[unlikely]] {
    peak_total_ = live_total_;
    stats_.at_peak_bytes = stats_.live_bytes;
  }
}

void* Allocator::get(size_t bytes, MemoryClass c) {
  const SizeClass size = size_class(bytes);
  if (size.bin < kBins) [[likely]] {
    lock();
    Free* block = lists_[size.bin];
    if (block) [[likely]] {
      lists_[size.bin] = block->next;
      account(static_cast<int64_t>(size.bytes), c);
      unlock();
      return block;
    }
    unlock();
  }
  return get_from_system(bytes, size.bytes, c);
}

void* Allocator::get_from_system(size_t bytes, size_t block_bytes, MemoryClass c) {
  constexpr size_t kLargest = size_t{1} << 62;
  const size_t asked = kCaching ? block_bytes : bytes;
  // Blocks of sizes that are not asked for any more would pile up where sizes keep changing.
  constexpr int64_t kMostIdle = int64_t{1} << 30;
  const MemoryStats now = stats();
  if (now.reserved_bytes - now.live_total() > kMostIdle + now.live_total()) trim();
  void* block = bytes < kLargest ? system_get(asked) : nullptr;
  if (!block && bytes < kLargest) {
    trim();
    block = system_get(asked);
  }
  PLUMB_CHECK(
      block,
      "out of memory: {} bytes for {} ({} bytes are in use); use a smaller batch, or give the process more memory",
      bytes, c, stats().live_total());
  lock();
  stats_.reserved_bytes += static_cast<int64_t>(block_bytes);
  ++stats_.system_allocations;
  account(static_cast<int64_t>(block_bytes), c);
  unlock();
  return block;
}

void Allocator::put(void* block, size_t bytes, MemoryClass c) noexcept {
  const SizeClass size = size_class(bytes);
  lock();
  stats_.live_bytes[static_cast<size_t>(c)] -= static_cast<int64_t>(size.bytes);
  live_total_ -= static_cast<int64_t>(size.bytes);
  if constexpr (kCaching) {
    auto* free_block = static_cast<Free*>(block);
    free_block->next = lists_[size.bin];
    lists_[size.bin] = free_block;
    unlock();
  } else {
    stats_.reserved_bytes -= static_cast<int64_t>(size.bytes);
    unlock();
    system_put(block, size.bytes);
  }
}

MemoryStats Allocator::stats() const {
  lock();
  const MemoryStats copy = stats_;
  unlock();
  return copy;
}

void Allocator::reset_peaks() {
  lock();
  stats_.peak_bytes = stats_.at_peak_bytes = stats_.live_bytes;
  peak_total_ = live_total_;
  unlock();
}

void Allocator::trim() {
  Free* all[kBins];
  lock();
  std::copy(lists_, lists_ + kBins, all);
  std::fill(lists_, lists_ + kBins, nullptr);
  unlock();
  int64_t freed = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    while (Free* block = all[bin]) {
      all[bin] = block->next;
      const int octave = (bin - 1) / 4 + 8, quarter = (bin - 1) % 4;
      const int64_t bytes =
          bin == 0 ? int64_t{kAlignment} : (int64_t{1} << octave) + (int64_t{quarter + 1} << (octave - 2));
      freed += bytes;
      system_put(block, static_cast<size_t>(bytes));
    }
  }
  lock();
  stats_.reserved_bytes -= freed;
  unlock();
}

Allocator& cpu_memory() {
  static constinit Allocator allocator;
  return allocator;
}

}  // namespace plumb
