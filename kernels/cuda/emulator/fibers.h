// Stacks that threads of a kernel run on, and passing from one to another.
#pragma once

#include <cstddef>
#include <exception>

namespace plumb::emulator {

/// A stack of 256 KiB, which holds the largest argument of a kernel several times, with a page below it that nobody may
/// touch. Where AddressSanitizer looks on, it is told of every passage.
class Fiber {
 public:
  /// Of the host's thread, which has a stack already.
  Fiber() = default;
  /// With a stack of its own, on which `begin` is called at the first passage to it; it never returns. Throws Error
  /// where there is no memory.
  explicit Fiber(void (*begin)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From this one, which runs, to another; returns when somebody passes back.
  void pass_to(Fiber& to);
  /// The first thing on a new stack.
  static void arrived();

 private:
  void* sp_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  static Fiber* last_;  // who passed
};

/// What ThreadSanitizer is told: each thread of a kernel is one to it, and what they wait for orders them. Nothing in
/// other builds.
namespace tsan {
#ifdef PLUMB_SANITIZED_THREADS
inline constexpr bool kLooksOn = true;
void* current();
void* create();
void become(void* fiber);
void acquire(void* at);
void release(void* at);
void take_no_notice_of(void* from, size_t bytes);
#else
inline constexpr bool kLooksOn = false;
inline void* current() { return nullptr; }
inline void* create() { return nullptr; }
inline void become(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
inline void take_no_notice_of(void*, size_t) {}
#endif
}  // namespace tsan

}  // namespace plumb::emulator
