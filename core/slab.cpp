#include "core/slab.h"

#include <iterator>
#include <new>
#include <utility>

namespace plumb::detail {

void* Slab::get(size_t bytes) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second >= bytes && (best == free_.end() || it->second < best->second)) best = it;
  }
  if (best == free_.end()) return nullptr;
  const auto [offset, room] = *best;
  auto range = free_.extract(best);
  if (room > bytes) {  // which needs no memory
    range.key() = offset + bytes;
    range.mapped() = room - bytes;
    free_.insert(std::move(range));
  }
  return begin_ + offset;
}

void Slab::put(void* block, size_t bytes) noexcept {
  auto it = free_.end();
  try {
    it = free_.emplace(static_cast<size_t>(static_cast<char*>(block) - begin_), bytes).first;
  } catch (const std::bad_alloc&) {
    return;  // it is not free then, which is not worth the process
  }
  if (const auto next = std::next(it); next != free_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return;
  if (const auto last = std::prev(it); last->first + last->second == it->first) {
    last->second += it->second;
    free_.erase(it);
  }
}

}  // namespace plumb::detail
