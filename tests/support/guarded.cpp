#include "tests/support/guarded.h"

#include <cstring>
#include <functional>
#include <map>
#include <vector>

namespace plumb::test {
namespace {

struct Extent {
  const char *data = nullptr, *data_end = nullptr, *end = nullptr;
};
// Those of a device, by their blocks. A kernel of the emulated device asks at each access.
struct Alive {
  std::map<const char*, Extent, std::less<>> by_block;
  Extent last;  // that was reached: mostly it is the same buffer again
};
Alive& alive() {
  static auto* all = new Alive;
  return *all;
}

std::unique_ptr<const char, void (*)(const char*)> note(const char* block, const Extent& extent) {
  alive().by_block[block] = extent;
  return {block, [](const char* b) {
            alive().by_block.erase(b);
            alive().last = {};
          }};
}

}  // namespace

Guarded::Guarded(const void* from, size_t bytes, Device device, size_t zone)
    : zone_(zone),
      bytes_(bytes),
      size_((bytes + 2 * zone + 255) / 256 * 256),
      device_(device),
      is_copy_(from != nullptr),
      block_(detail::block_of(size_, MemoryClass::kWorkspace, device)) {
  if (!device.is_cpu()) {  // on the host nobody asks, and several threads make them
    const char *const block = static_cast<const char*>(block_.get()), *const first = block + zone_;
    noted_ = note(block, {first, first + bytes_, block + size_});
  }
  std::vector<unsigned char> all(size_);
  for (size_t i = 0; i < size_; ++i) all[i] = i < zone_ || i >= zone_ + bytes_ ? of_zone(i) : 0xff;
  if (from && bytes) std::memcpy(all.data() + zone_, from, bytes);
  detail::copy_bytes(block_.get(), device_, all.data(), {}, size_);
}

bool Guarded::is_beside_zones(const void* begin, size_t bytes) {
  auto& [blocks, last] = alive();
  if (blocks.empty()) return true;
  const std::less_equal<> before;
  const char *const first = static_cast<const char*>(begin), *const end = first + bytes;
  if (before(last.data, first) && before(end, last.data_end)) return true;
  auto next = blocks.upper_bound(first);
  if (next != blocks.begin()) {  // the block that begins at or before it
    const Extent& e = std::prev(next)->second;
    const bool is_inside = before(e.data, first) && before(end, e.data_end);
    if (is_inside) last = e;
    if (!is_inside && !before(e.end, first)) return false;
  }
  return next == blocks.end() || before(end, next->first);
}

bool Guarded::intact() const {
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

}  // namespace plumb::test
