#include "core/layout.h"

#include <map>
#include <mutex>
#include <vector>

#include "core/error.h"

namespace plumb {
namespace {

struct Pack {
  std::string name;
  size_t bytes;
};
struct Packs {
  std::mutex mutex;
  std::vector<Pack> all;
  std::map<std::string, size_t, std::less<>> by_key;
};
Packs& packs() {
  static Packs* p = new Packs;  // outlives every static tensor
  return *p;
}
constexpr size_t kFirst = static_cast<size_t>(Layout::kFirstPack);

Pack pack_of(Layout l) {
  Packs& p = packs();
  const std::lock_guard lock(p.mutex);
  const size_t i = static_cast<size_t>(l) - kFirst;
  PLUMB_CHECK(i < p.all.size(), "layout {} is not a known pack", static_cast<int>(l));
  return p.all[i];
}

}  // namespace

std::string to_string(Layout l) {
  switch (l) {
    case Layout::kNchw: return "nchw";
    case Layout::kNhwc: return "nhwc";
    case Layout::kChwn: return "chwn";
    default: return pack_of(l).name;
  }
}

Layout layout_from_string(std::string_view name) {
  for (const Layout l : kPublicLayouts) {
    if (name == to_string(l)) return l;
  }
  fail("layout \"{}\" is unknown; use nchw, nhwc or chwn", name);
}

Layout intern_pack(std::string_view key, std::string_view name, size_t bytes) {
  Packs& p = packs();
  const std::lock_guard lock(p.mutex);
  if (const auto it = p.by_key.find(key); it != p.by_key.end()) return static_cast<Layout>(kFirst + it->second);
  PLUMB_CHECK(p.all.size() < 65536 - kFirst, "more than {} different weight formats are in use", 65536 - kFirst);
  p.all.push_back({std::string(name), bytes});
  p.by_key.emplace(key, p.all.size() - 1);
  return static_cast<Layout>(kFirst + p.all.size() - 1);
}

size_t pack_bytes(Layout pack) { return pack_of(pack).bytes; }

}  // namespace plumb
