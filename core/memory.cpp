#include "core/memory.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <numeric>

#include "core/context.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/runtime.h"
#include "core/slab.h"

namespace plumb {
namespace {

constexpr std::array<const char*, kMemoryClassCount> kNames = {"parameter", "gradient", "activation", "state",
                                                               "workspace", "pack",     "input"};
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

size_t bytes_of_bin(int bin) {
  const int octave = (bin - 1) / 4 + 8, quarter = (bin - 1) % 4;
  return bin == 0 ? kAlignment : (size_t{1} << octave) + (static_cast<size_t>(quarter + 1) << (octave - 2));
}

// The memory that `get` gives. What was noted of it before is taken back where there is none, or get throws.
template <class Get, class TakeBack>
void* unless_it_fails(const Get& get, const TakeBack& take_back) {
  try {
    void* const memory = get();
    if (!memory) take_back();
    return memory;
  } catch (...) {
    take_back();
    throw;
  }
}

// "12 bytes are in use: parameter 8, input 4".
std::string text_of_live(const MemoryStats& s) {
  std::string text = message("{} bytes are in use", s.live_total());
  const char* between = ": ";
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (s.live_bytes[i] == 0) continue;
    text += message("{}{} {}", between, kNames[i], s.live_bytes[i]);
    between = ", ";
  }
  return text;
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

bool Allocator::keeps_blocks() const { return device_ ? device_->keeps_blocks() : detail::kKeepsBlocks; }

void* Allocator::from_system(size_t bytes) { return device_ ? device_->allocate(bytes) : detail::system_get(bytes); }

void Allocator::to_system(void* block, size_t bytes) {
  if (device_) return device_->release(block, bytes);
  detail::system_put(block, bytes);
}

// The block that a note in a free list is of.
void* Allocator::taken(Free* noted) const {
  if (!device_) [[likely]]
    return noted;
  void* const block = noted->block;
  detail::ctx.pool.put(noted, sizeof(Free));
  return block;
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
      return taken(block);
    }
    unlock();
  }
  return get_from_system(bytes, size.bytes, c);
}

void* Allocator::get_from_system(size_t bytes, size_t block_bytes, MemoryClass c) {
  constexpr size_t kLargest = size_t{1} << 62;
  const size_t asked = keeps_blocks() ? block_bytes : bytes;
  // Blocks of sizes that are not asked for any more would pile up where sizes keep changing.
  constexpr int64_t kMostIdle = int64_t{1} << 30;
  const MemoryStats now = stats();
  if (!slab_ && now.reserved_bytes - now.live_total() > kMostIdle + now.live_total()) trim();
  bool is_cut = false;  // from the piece that was preallocated
  const auto take = [&]() -> void* {
    lock();
    void* block = slab_ ? slab_->get(detail::aligned(block_bytes)) : nullptr;  // so that the next is aligned
    is_cut = block != nullptr;
    const bool asks = !block && static_cast<int64_t>(block_bytes) <= limit_ - stats_.reserved_bytes;
    if (asks) stats_.reserved_bytes += static_cast<int64_t>(block_bytes);  // at once: two threads would both find room
    unlock();
    if (!asks) return block;
    return unless_it_fails([&] { return from_system(asked); },
                           [&] {
                             lock();
                             stats_.reserved_bytes -= static_cast<int64_t>(block_bytes);
                             unlock();
                           });
  };
  void* block = bytes < kLargest ? take() : nullptr;
  if (!block && bytes < kLargest) {
    trim();
    block = take();
  }
  if (!block) [[unlikely]] {
    const std::string where = device_ ? " on " + device_->properties().name : "", live = text_of_live(stats());
    PLUMB_CHECK(limit_ == INT64_MAX,
                "out of memory{}: {} bytes for {} ({}; the limit is {} bytes); use a smaller batch, or a higher limit",
                where, bytes, c, live, limit_);
    fail("out of memory{}: {} bytes for {} ({}); use a smaller batch, or {}", where, bytes, c, live,
         device_ ? "a device with more memory" : "give the process more memory");
  }
  lock();
  if (!is_cut) ++stats_.system_allocations;
  account(static_cast<int64_t>(block_bytes), c);
  unlock();
  return block;
}

void Allocator::put(void* block, size_t bytes, MemoryClass c) noexcept {
  const SizeClass size = size_class(bytes);
  const bool keeps = keeps_blocks();
  auto* const noted = static_cast<Free*>(device_ && keeps ? detail::ctx.pool.get(sizeof(Free)) : block);
  lock();
  stats_.live_bytes[static_cast<size_t>(c)] -= static_cast<int64_t>(size.bytes);
  live_total_ -= static_cast<int64_t>(size.bytes);
  if (keeps) [[likely]] {
    if (device_) noted->block = block;
    noted->next = lists_[size.bin];
    lists_[size.bin] = noted;
    unlock();
  } else {
    stats_.reserved_bytes -= static_cast<int64_t>(size.bytes);
    unlock();
    to_system(block, bytes);
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
  // One thread at a time: another that finds no room then waits for what is being returned, instead of finding nothing.
  static constinit std::mutex trimming;  // of all allocators: it is rare
  const std::lock_guard one(trimming);
  Free* all[kBins];
  lock();
  std::copy(lists_, lists_ + kBins, all);
  std::fill(lists_, lists_ + kBins, nullptr);
  unlock();
  int64_t freed = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    while (Free* noted = all[bin]) {
      all[bin] = noted->next;
      void* const block = taken(noted);
      if (slab_ && slab_->holds(block)) {
        lock();
        slab_->put(block, detail::aligned(bytes_of_bin(bin)));
        unlock();
        continue;
      }
      freed += static_cast<int64_t>(bytes_of_bin(bin));
      to_system(block, bytes_of_bin(bin));
    }
  }
  lock();
  stats_.reserved_bytes -= freed;
  unlock();
}

void Allocator::set_limit(size_t bytes) {
  lock();
  limit_ = static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
  unlock();
}

void Allocator::preallocate(size_t bytes) {
  if (!keeps_blocks()) return;
  PLUMB_CHECK(!slab_, "preallocate: {} bytes are preallocated already; this is done once", slab_->bytes());
  PLUMB_CHECK(bytes <= size_t{1} << 62, "preallocate: {} bytes are more than a machine has", bytes);
  const size_t whole = detail::aligned(bytes);
  lock();
  const int64_t taken = stats_.reserved_bytes, limit = limit_;
  const bool fits = static_cast<int64_t>(whole) <= limit - taken;
  if (fits) stats_.reserved_bytes += static_cast<int64_t>(whole);
  unlock();
  PLUMB_CHECK(fits, "preallocate: {} bytes were asked for, {} are taken and the limit is {}", bytes, taken, limit);
  void* const memory = unless_it_fails([&] { return from_system(whole); },
                                       [&] {
                                         lock();
                                         stats_.reserved_bytes -= static_cast<int64_t>(whole);
                                         unlock();
                                       });
  PLUMB_CHECK(memory, "preallocate: there are no {} bytes in one piece", bytes);
  auto* const slab = new detail::Slab(memory, whole);
  lock();
  slab_ = slab;
  ++stats_.system_allocations;
  unlock();
}

Allocator& cpu_memory() {
  static constinit Allocator allocator;
  return allocator;
}

}  // namespace plumb
