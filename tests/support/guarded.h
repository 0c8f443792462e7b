// Memory between two zones that must not be touched.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

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
  /// Whether some of these bytes lie in a zone of any that is alive.
  static bool is_zone(const void* begin, size_t bytes) {
    const std::less_equal<> before;
    const char *const first = static_cast<const char*>(begin), *const end = first + bytes;
    Extent& last = last_reached();  // mostly it is the same buffer again
    if (before(last.data, first) && before(end, last.data_end)) return false;
    auto next = alive().upper_bound(first);
    if (next != alive().begin()) {  // the block that begins at or before it
      const Extent& e = std::prev(next)->second;
      const bool is_inside = before(e.data, first) && before(end, e.data_end);
      if (is_inside) last = e;
      if (!is_inside && !before(e.end, first)) return true;
    }
    return next != alive().end() && !before(end, next->first);
  }
  void* data() const { return static_cast<unsigned char*>(block_.get()) + zone_; }
  bool intact() const {
    std::vector<unsigned char> all(size_);
    detail::copy_bytes(all.data(), {}, block_.get(), device_, size_);
    const auto untouched = [&](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i) {
        if (all[i] != of_zone(i)) return false;
      }
      return true;
    };
    return untouched(0, zone_) && untouched(zone_ + bytes_, size_);
  }

 private:
  Guarded(const void* from, size_t bytes, Device device, size_t zone)
      : zone_(zone),
        bytes_(bytes),
        size_((bytes + 2 * zone + 255) / 256 * 256),
        device_(device),
        is_copy_(from != nullptr),
        block_(detail::block_of(size_, MemoryClass::kWorkspace, device)) {
    if (!device.is_cpu()) note();  // on the host nobody asks, and several threads make them
    std::vector<unsigned char> all(size_);
    for (size_t i = 0; i < size_; ++i) all[i] = i < zone_ || i >= zone_ + bytes_ ? of_zone(i) : 0xff;
    if (from && bytes) std::memcpy(all.data() + zone_, from, bytes);
    detail::copy_bytes(block_.get(), device_, all.data(), {}, size_);
  }
  void note() {
    const char *const block = static_cast<const char*>(block_.get()), *const first = block + zone_;
    alive()[block] = {first, first + bytes_, block + size_};
    is_alive_ = {block, [](const char* b) {
                   alive().erase(b);
                   last_reached() = {};
                 }};
  }
  struct Extent {
    const char *data, *data_end, *end;
  };
  static std::map<const char*, Extent, std::less<>>& alive() {  // by their blocks
    static auto* all = new std::map<const char*, Extent, std::less<>>;
    return *all;
  }
  static Extent& last_reached() {
    static Extent last{};
    return last;
  }
  // 0xffff..., or 0x7fff...
  unsigned char of_zone(size_t i) const { return is_copy_ && i % 2 == 1 ? 0x7f : 0xff; }
  size_t zone_, bytes_, size_;
  Device device_;
  bool is_copy_;
  detail::Block block_;
  std::unique_ptr<const char, void (*)(const char*)> is_alive_{nullptr, [](const char*) {}};
};

}  // namespace plumb::test
