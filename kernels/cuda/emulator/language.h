// The words of CUDA C++ that our kernels use, for the host's compiler. What they do is in threads.cpp: every thread of
// a block has a stack of its own as soon as it must wait for another.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace plumb::emulator {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};
/// What the running thread sees of itself; set at every switch.
struct Self {
  Index3 thread, block, threads, blocks;
  unsigned lane = 0;
};
inline constinit Self self;

/// Waits until all threads of the block are at a barrier, which must be this one.
void wait_for_block(const void* where);
/// Waits for the lanes of `mask`, and returns what each of the 32 gave.
const uint64_t* exchange(uint32_t mask, uint64_t mine, const void* where);
/// Bytes that kernels say that they read from memory, and write to it.
inline constinit int64_t read_bytes = 0, written_bytes = 0;
/// Whether somebody is asked of each (watch_accesses), and the question: if the answer is no, the launch fails at its
/// end. (Of calls that may throw between the parts of an aggregate, g++ 12 makes an internal error.)
inline constinit bool is_watched = false;
void look_at(const void* begin, size_t bytes) noexcept;
/// The shared memory of the block, between zones that nobody may touch; full of NaNs before every block.
void* shared_memory(size_t bytes);

template <class T>
T from_lane(uint32_t mask, const T& v, unsigned source, const void* where) {
  static_assert(std::is_arithmetic_v<T>);  // what CUDA has shuffles for
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  bits = exchange(mask, bits, where)[source < 32 ? source : self.lane];
  T result;
  std::memcpy(&result, &bits, sizeof v);
  return result;
}

}  // namespace plumb::emulator

#define threadIdx (::plumb::emulator::self.thread)
#define blockIdx (::plumb::emulator::self.block)
#define blockDim (::plumb::emulator::self.threads)
#define gridDim (::plumb::emulator::self.blocks)

// Where in the source a thread waits.
#define PLUMB_HERE               \
  ([]() -> const void* {         \
    static const char place = 0; \
    return &place;               \
  }())
#define __syncthreads() ::plumb::emulator::wait_for_block(PLUMB_HERE)
#define __shfl_sync(mask, v, source) \
  ::plumb::emulator::from_lane(mask, v, static_cast<unsigned>(source) % 32u, PLUMB_HERE)
#define __shfl_xor_sync(mask, v, lanes) \
  ::plumb::emulator::from_lane(mask, v, ::plumb::emulator::self.lane ^ static_cast<unsigned>(lanes), PLUMB_HERE)

// One thread runs at a time, and none stops inside these.
template <class T>
T atomicAdd(T* to, T v) {
  return __atomic_fetch_add(to, v, __ATOMIC_RELAXED);
}
template <class T>
T atomicCAS(T* to, T expected, T v) {
  __atomic_compare_exchange_n(to, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

namespace plumb::cuda {
// One thread runs at a time; ThreadSanitizer need not look at it.
#if defined(__SANITIZE_THREAD__)
[[gnu::no_sanitize("thread"), gnu::noinline]]
#endif
inline void
count(int64_t& total, const void* begin, size_t bytes) {
  total += static_cast<int64_t>(bytes);
  if (::plumb::emulator::is_watched) [[unlikely]]
    ::plumb::emulator::look_at(begin, bytes);
}
inline void count_read(const void* begin, size_t bytes) { count(::plumb::emulator::read_bytes, begin, bytes); }
inline void count_written(const void* begin, size_t bytes) { count(::plumb::emulator::written_bytes, begin, bytes); }
template <class T>
T& shared() {
  return *static_cast<T*>(::plumb::emulator::shared_memory(sizeof(T)));
}
}  // namespace plumb::cuda
