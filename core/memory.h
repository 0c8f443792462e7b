// Memory of the host and of devices: a caching allocator that knows what every block is for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plumb {

class Runtime;  // runtime.h
namespace detail {
class Slab;  // slab.h
}  // namespace detail

/// Alignment of every tensor, pack and workspace, in bytes.
inline constexpr size_t kAlignment = 256;
namespace detail {
/// `bytes` rounded up to whole units of alignment.
constexpr size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace detail

/// What a block of memory is for. "Memory by class" is one of the metrics.
enum class MemoryClass : uint8_t { kParameter, kGradient, kActivation, kState, kWorkspace, kPack, kInput };
inline constexpr int kMemoryClassCount = 7;
/// "parameter", "gradient", "activation", "state", "workspace", "pack", "input".
const char* to_string(MemoryClass c);

/// What an allocator has handed out, in bytes of size classes.
struct MemoryStats {
  using ByClass = std::array<int64_t, kMemoryClassCount>;
  ByClass live_bytes{};            ///< in use now
  ByClass peak_bytes{};            ///< the largest live_bytes of each class since reset_peaks
  ByClass at_peak_bytes{};         ///< live_bytes of each class when their sum was largest
  int64_t reserved_bytes = 0;      ///< taken from the system: live, cached and preallocated
  int64_t allocations = 0;         ///< calls of get
  int64_t system_allocations = 0;  ///< those calls of get that had to ask the system

  int64_t live_total() const;
  int64_t peak_total() const;  ///< the largest sum over all classes, which equals the sum of at_peak_bytes
};

/// Allocates memory of the host or of one device, 256-byte aligned. Blocks have size classes, four per octave, and are
/// cached when they are put back: page faults on fresh memory cost more than many ops. Any thread may get and put.
class Allocator {
 public:
  constexpr Allocator() = default;
  /// The allocator of a device, whose memory the host never touches.
  constexpr explicit Allocator(Runtime* device) : device_(device) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// A block of at least `bytes` bytes. When the system has no more or the limit is reached, it first releases all
  /// cached blocks, and throws Error if that is not enough.
  void* get(size_t bytes, MemoryClass c);
  /// Takes a block back; `bytes` and `c` must be those that were passed to get.
  void put(void* block, size_t bytes, MemoryClass c) noexcept;
  /// A copy of the counts so far.
  MemoryStats stats() const;
  /// Sets the peaks to what is live now.
  void reset_peaks();
  /// Returns every cached block to the system.
  void trim();
  /// Limits the bytes held from the system, all together; blocks that are held already stay. 0 refuses every new one.
  void set_limit(size_t bytes);
  /// Takes `bytes` from the system in one piece now, so that nothing else can take them; blocks are cut from it as long
  /// as it lasts. Throws the second time, and if the system has not so much. Does nothing under AddressSanitizer.
  void preallocate(size_t bytes);

 private:
  struct Free {  // on the host it lies in the free block itself; for a device it comes from the pool
    Free* next;
    void* block;
  };
  static constexpr int kBins = 56 * 4;
  bool keeps_blocks() const;
  void* from_system(size_t bytes);
  void to_system(void* block, size_t bytes);
  void* get_from_system(size_t bytes, size_t block_bytes, MemoryClass c);
  void* taken(Free* noted) const;
  void account(int64_t bytes, MemoryClass c);
  void lock() const;
  void unlock() const { locked_.clear(std::memory_order_release); }

  mutable std::atomic_flag locked_;
  Runtime* device_ = nullptr;
  Free* lists_[kBins] = {};
  MemoryStats stats_{};
  int64_t live_total_ = 0, peak_total_ = 0;
  int64_t limit_ = INT64_MAX;
  detail::Slab* slab_ = nullptr;  // never freed: blocks of static tensors may outlive it
};

/// The allocator of the host.
Allocator& cpu_memory();

}  // namespace plumb
