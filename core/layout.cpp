#include "core/layout.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "core/error.h"

namespace plumb {
namespace {

constexpr size_t kFirst = static_cast<size_t>(Layout::kFirstPack), kMost = 65536 - kFirst;

struct Packs {
  std::mutex mutex;
  std::vector<std::string> names;
};
Packs& packs() {
  static Packs* p = new Packs;  // outlives every static tensor
  return *p;
}
// Of each pack, 1 + its bytes; 0 is unknown. Read by every warm step that packs, and so without a lock.
constinit std::atomic<size_t> sizes[kMost] = {};

[[noreturn]] void refuse_pack(Layout l) { fail("layout {} is not a known pack", static_cast<int>(l)); }

std::string pack_name(Layout l) {
  Packs& p = packs();
  const std::lock_guard lock(p.mutex);
  const size_t i = static_cast<size_t>(l) - kFirst;
  if (i >= p.names.size()) refuse_pack(l);
  return p.names[i];
}

}  // namespace

std::string to_string(Layout l) {
  switch (l) {
    case Layout::kNchw: return "nchw";
    case Layout::kNhwc: return "nhwc";
    case Layout::kChwn: return "chwn";
    default: return pack_name(l);
  }
}

Layout layout_from_string(std::string_view name) {
  for (const Layout l : kPublicLayouts) {
    if (name == to_string(l)) return l;
  }
  fail("layout \"{}\" is unknown; use nchw, nhwc or chwn", name);
}

Layout detail::new_pack(std::string_view name, size_t bytes) {
  Packs& p = packs();
  const std::lock_guard lock(p.mutex);
  const size_t i = p.names.size();
  PLUMB_CHECK(
      i < kMost,
      "more than {} different formats of weights were made in this process, and each stays; use fewer shapes in "
      "one process, or an algorithm that packs none",
      kMost);
  p.names.emplace_back(name);
  sizes[i].store(1 + bytes, std::memory_order_release);
  return static_cast<Layout>(kFirst + i);
}

size_t detail::pack_bytes(Layout pack) {
  const size_t i = static_cast<size_t>(pack) - kFirst;
  const size_t known = i < kMost ? sizes[i].load(std::memory_order_acquire) : 0;
  if (known == 0) refuse_pack(pack);
  return known - 1;
}

}  // namespace plumb
