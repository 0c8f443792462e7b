// Memory between two zones that must not be touched.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/block.h"

namespace plumb::test {

/// `bytes` bytes of a device, aligned to 64 but not to 128 bytes: kernels may rely on no more. The zones around them
/// are filled with NaNs of every dtype, so that reading them gives NaN, and writing them is noticed.
class Guarded {
 public:
  explicit Guarded(size_t bytes, Device device = {}) : Guarded(nullptr, bytes, device) {}
  /// Filled with a copy of host memory.
  Guarded(const void* from, size_t bytes, Device device = {}) : Guarded(from, bytes, device, 512 + 64) {}
  /// Memory that comes from the allocator alone, and is aligned as it does that: the vendor's libraries for a GPU take
  /// no other workspace.
  static Guarded workspace(size_t bytes, Device device) {
    if (device.is_cpu()) return Guarded(bytes);
    return {nullptr, bytes, device, 2 * kAlignment};
  }
  void* data() const { return static_cast<unsigned char*>(block_.get()) + zone_; }
  bool intact() const {
    std::vector<unsigned char> all(size_);
    detail::copy_bytes(all.data(), {}, block_.get(), device_, size_);
    const auto untouched = [&](size_t from, size_t to) {
      return std::all_of(all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(to),
                         [](unsigned char b) { return b == 0xff; });
    };
    return untouched(0, zone_) && untouched(zone_ + bytes_, size_);
  }

 private:
  Guarded(const void* from, size_t bytes, Device device, size_t zone)
      : zone_(zone),
        bytes_(bytes),
        size_((bytes + 2 * zone + 255) / 256 * 256),
        device_(device),
        block_(detail::block_of(size_, MemoryClass::kWorkspace, device)) {
    std::vector<unsigned char> all(size_, 0xff);
    if (from && bytes) std::memcpy(all.data() + zone_, from, bytes);
    detail::copy_bytes(block_.get(), device_, all.data(), {}, size_);
  }
  size_t zone_, bytes_, size_;
  Device device_;
  detail::Block block_;
};

}  // namespace plumb::test
