#include "core/pool.h"

#include <cstdlib>
#include <mutex>
#include <new>

#include "core/context.h"

namespace plumb::detail {

struct Pool::Shared {
  std::mutex mutex;
  List lists[kClasses];
};

Pool::Shared& Pool::shared() {
  static Shared* s = new Shared;  // outlives every thread
  return *s;
}

void* Pool::refill(int c, size_t bytes) {
#ifndef __SANITIZE_ADDRESS__
  if (c < kClasses) {
    if (!watched_) watch();
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    List &from = s.lists[c], &to = lists_[c];
    for (size_t i = 0; from.head && i < limit(c) / 2; ++i) {
      Free* object = from.head;
      from.head = object->next;
      --from.count;
      object->next = to.head;
      to.head = object;
      ++to.count;
    }
    if (Free* object = to.head) {
      to.head = object->next;
      --to.count;
      return object;
    }
  }
#endif
  const size_t size = c < kClasses ? bytes_of(c) : (bytes + 63) / 64 * 64;
  void* object = std::aligned_alloc(64, size);
  if (!object) throw std::bad_alloc();
  return object;
}

void Pool::spill(int c) noexcept {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  List &from = lists_[c], &to = s.lists[c];
  const size_t keep = limit(c) / 2;
  while (from.head && from.count > keep) {
    Free* object = from.head;
    from.head = object->next;
    --from.count;
    if (to.count >= 4 * limit(c)) {
      std::free(object);
      continue;
    }
    object->next = to.head;
    to.head = object;
    ++to.count;
  }
}

void Pool::watch() noexcept {
  watched_ = true;
  detail::watch_thread_end();
}

void Pool::drain() noexcept {
  for (int c = 0; c < kClasses; ++c) {
    while (Free* object = lists_[c].head) {
      lists_[c].head = object->next;
      std::free(object);
    }
    lists_[c].count = 0;
  }
}

}  // namespace plumb::detail
