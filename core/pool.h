// Memory for small host objects (values, tape nodes, lists): thread-local free lists, no lock once warm.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace plumb::detail {

/// The free lists of one thread, by size: multiples of 64 bytes, then powers of two. If one thread frees what others
/// allocate, its list grows long: it moves half to a shared store, from which empty lists refill.
class Pool {
 public:
  constexpr Pool() = default;
  void* get(size_t bytes) {
    const int c = class_of(bytes);
#ifndef __SANITIZE_ADDRESS__
    if (c < kClasses) [[likely]] {
      List& list = lists_[c];
      if (list.head) [[likely]] {
        Free* object = list.head;
        list.head = object->next;
        --list.count;
        return object;
      }
    }
#endif
    return refill(c, bytes);
  }
  void put(void* object, [[maybe_unused]] size_t bytes) noexcept {
#ifndef __SANITIZE_ADDRESS__
    if (const int c = class_of(bytes); c < kClasses) [[likely]] {
      List& list = lists_[c];
      auto* free_object = static_cast<Free*>(object);
      free_object->next = list.head;
      list.head = free_object;
      if (++list.count > limit(c)) [[unlikely]]
        spill(c);
      if (!watched_) [[unlikely]]
        watch();
      return;
    }
#endif
    std::free(object);
  }
  /// Returns every free object to the system; called when the thread ends.
  void drain() noexcept;

 private:
  struct Free {
    Free* next;
  };
  struct List {
    Free* head = nullptr;
    size_t count = 0;
  };
  struct Shared;
  static constexpr int kSmall = 16, kClasses = kSmall + 10;  // 64 ... 1024 by 64, then 2 KiB ... 1 MiB by doubling
  static int class_of(size_t bytes) {
    if (bytes <= 64 * kSmall) return bytes ? static_cast<int>((bytes - 1) / 64) : 0;
    return kSmall + 53 - __builtin_clzll(bytes - 1);
  }
  static size_t bytes_of(int c) { return c < kSmall ? static_cast<size_t>(c + 1) * 64 : size_t{2048} << (c - kSmall); }
  static size_t limit(int c) { return c < kSmall ? 1 << 16 : 64; }
  static Shared& shared();
  void* refill(int c, size_t bytes);
  void spill(int c) noexcept;
  void watch() noexcept;  // makes sure that drain() is called when the thread ends

  List lists_[kClasses];
  bool watched_ = false;
};

/// A standard allocator that uses the calling thread's pool.
template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(size_t n);
  void deallocate(T* p, size_t n) noexcept;
  template <class U>
  bool operator==(const PoolAllocator<U>&) const {
    return true;
  }
};

/// A vector whose storage needs no malloc once the pool is warm.
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

}  // namespace plumb::detail
