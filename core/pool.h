// Small host objects (values, tape nodes, lists): thread-local free lists, no lock on the warm path.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace plumb::detail {

/// Free lists of one thread, by multiples of 64 bytes and then by powers of two. A list that grows long (a thread that
/// frees what others allocate) hands half of itself to a shared store, from which an empty list refills.
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
  /// Gives every free object back to the system: what a thread does when it ends.
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
  void watch() noexcept;  // so that drain() is called when the thread ends

  List lists_[kClasses];
  bool watched_ = false;
};

/// A standard allocator on the pool of the calling thread.
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

/// A vector whose storage costs no call of malloc once warm.
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

}  // namespace plumb::detail
