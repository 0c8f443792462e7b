// Memory between two zones that must not be touched.
#pragma once

#include <cstddef>
#include <memory>

#include "core/block.h"

namespace plumb::test {

/// `bytes` bytes of a device, aligned to 64 but not to 128 bytes: kernels may rely on no more. The zones around them
/// are filled with NaNs of every dtype, so that reading them gives NaN, and writing them is noticed. Those of what was
/// copied there are other NaNs, so that a kernel is noticed which copies a zone to a zone.
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
  /// Whether none of these bytes lies in a zone of any that is alive, and not on the host.
  static bool is_beside_zones(const void* begin, size_t bytes);
  void* data() const { return static_cast<unsigned char*>(block_.get()) + zone_; }
  bool intact() const;

 private:
  Guarded(const void* from, size_t bytes, Device device, size_t zone);
  // 0xffff..., or 0x7fff...
  unsigned char of_zone(size_t i) const { return is_copy_ && i % 2 == 1 ? 0x7f : 0xff; }

  size_t zone_, bytes_, size_;
  Device device_;
  bool is_copy_;
  detail::Block block_;
  std::unique_ptr<const char, void (*)(const char*)> noted_{nullptr, [](const char*) {}};
};

}  // namespace plumb::test
