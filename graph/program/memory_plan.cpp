#include "graph/program/memory_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory_resource>
#include <queue>
#include <set>

namespace plumb::detail {
namespace {

// The gaps below `top`, by offset and by size.
class FreeList {
 public:
  // Takes the smallest gap that is large enough, or new memory at the top.
  size_t take(size_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      size_t at = top_;
      if (!by_place_.empty() && by_place_.rbegin()->first + by_place_.rbegin()->second == top_) {
        at = by_place_.rbegin()->first;
        remove(std::prev(by_place_.end()));
      }
      top_ = at + bytes;
      return at;
    }
    const auto [size, at] = *fit;
    remove(by_place_.find(at));
    if (size > bytes) insert(at + bytes, size - bytes);
    return at;
  }
  void give_back(size_t at, size_t bytes) {
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.end() && at + bytes == next->first) {
      bytes += next->second;
      next = remove(next);
    }
    if (next != by_place_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    insert(at, bytes);
  }
  size_t top() const { return top_; }

 private:
  using ByPlace = std::pmr::map<size_t, size_t>;
  void insert(size_t at, size_t bytes) {
    by_place_.emplace(at, bytes);
    by_size_.emplace(bytes, at);
  }
  ByPlace::iterator remove(ByPlace::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    return by_place_.erase(gap);
  }
  std::pmr::unsynchronized_pool_resource nodes_;
  ByPlace by_place_{&nodes_};
  std::pmr::set<std::pair<size_t, size_t>> by_size_{&nodes_};
  size_t top_ = 0;
};

// Places values step by step, as an allocator does: n log n. Also finds the most bytes alive at once, a lower bound for
// every plan.
size_t in_order_of_time(const std::vector<Lifetime*>& values, size_t& most_alive) {
  std::vector<Lifetime*> by_first = values;
  if (!std::ranges::is_sorted(by_first, {}, &Lifetime::first)) std::ranges::stable_sort(by_first, {}, &Lifetime::first);
  const auto ends_later = [](const Lifetime* a, const Lifetime* b) { return a->last > b->last; };
  std::priority_queue<Lifetime*, std::vector<Lifetime*>, decltype(ends_later)> alive(ends_later);
  FreeList free;
  size_t alive_bytes = 0;
  for (Lifetime* v : by_first) {
    for (; !alive.empty() && alive.top()->last < v->first; alive.pop()) {
      free.give_back(alive.top()->offset, alive.top()->bytes);
      alive_bytes -= alive.top()->bytes;
    }
    v->offset = free.take(v->bytes);
    alive.push(v);
    alive_bytes += v->bytes;
    most_alive = std::max(most_alive, alive_bytes);
  }
  return free.top();
}

// Places the largest values first, each at the lowest free offset: tighter, but quadratic.
size_t in_order_of_size(const std::vector<Lifetime*>& values) {
  std::vector<Lifetime*> by_size = values, placed;  // `placed` is sorted by offset
  std::ranges::stable_sort(by_size, std::greater(), &Lifetime::bytes);
  size_t total = 0;
  for (Lifetime* v : by_size) {
    size_t at = 0;
    for (const Lifetime* p : placed) {
      if (p->first > v->last || v->first > p->last) continue;  // never alive together
      if (at + v->bytes <= p->offset) break;                   // fits in the gap before p
      at = std::max(at, p->offset + p->bytes);
    }
    v->offset = at;
    total = std::max(total, at + v->bytes);
    placed.insert(std::ranges::upper_bound(placed, at, {}, &Lifetime::offset), v);
  }
  return total;
}

}  // namespace

size_t plan_memory(std::vector<Lifetime>& values) {
  constexpr size_t kMostBySize = 2000;  // takes some milliseconds
  std::vector<Lifetime*> sized;
  for (Lifetime& v : values) {
    if (v.bytes > 0) sized.push_back(&v);
  }
  size_t most_alive = 0;
  const size_t by_time = in_order_of_time(sized, most_alive);
  if (by_time == most_alive || sized.size() > kMostBySize) return by_time;
  std::vector<size_t> offsets;
  for (const Lifetime* v : sized) offsets.push_back(v->offset);
  const size_t by_size = in_order_of_size(sized);
  if (by_size <= by_time) return by_size;
  for (size_t i = 0; i < sized.size(); ++i) sized[i]->offset = offsets[i];
  return by_time;
}

}  // namespace plumb::detail
