// The language that kernels are written in, for two compilers: nvcc, and the host's, for which emulator/language.h has
// the words. A kernel takes one struct of plain bytes, and its shared memory is one struct.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>

namespace plumb::cuda {
/// The shared memory of a block, uninitialised: `auto& s = shared<Shared>();`, at most once in a kernel.
template <class T>
__device__ __forceinline__ T& shared() {
  __shared__ T memory;
  return memory;
}
/// For the emulated device.
__device__ __forceinline__ void count_read(const void*, size_t) {}
__device__ __forceinline__ void count_written(const void*, size_t) {}
}  // namespace plumb::cuda
#else
#include "emulator/language.h"
#endif

#include "../../core/runtime.h"

namespace plumb::cuda {

constexpr unsigned kWarp = 32;
/// Blocks that a multiprocessor holds at least, for launch bounds: the compiler puts registers into memory to make room
/// for more of them, unless it is told how many will do.
constexpr unsigned kLeastBlocks = 4, kFewBlocks = 3;
constexpr unsigned kAllLanes = 0xffffffffu;

/// The upper half of the 128 bits of a product.
__device__ inline uint64_t high_half(uint64_t a, uint64_t b) {
#ifdef __CUDACC__
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{a} * b) >> 64);
#endif
}

/// The number of the thread in its grid along x, and how many there are.
__device__ inline int64_t thread_of_grid() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t threads_of_grid() { return int64_t{gridDim.x} * blockDim.x; }

/// The values of all lanes of a warp combined, in an order that does not change; in every lane.
template <class T, class Combine>
__device__ T warp_combine(T v, const Combine& combine) {
  for (int distance = 16; distance > 0; distance /= 2) v = combine(v, __shfl_xor_sync(kAllLanes, v, distance));
  return v;
}

/// The states of a warp's lanes as one, which every lane gets. They are merged in the order of the lanes, for a merge
/// may depend on it: how.merge(a, b), and how.from_lane(s, distance), the state of the lane whose number differs by
/// that.
template <class How>
__device__ typename How::State merge_warp(const How& how, typename How::State s) {
  for (int distance = 1; distance < static_cast<int>(kWarp); distance *= 2) {
    const auto other = how.from_lane(s, distance);
    const bool is_first = (threadIdx.x & static_cast<unsigned>(distance)) == 0;
    s = is_first ? how.merge(s, other) : how.merge(other, s);
  }
  return s;
}

/// The same for the threads of a block of whole warps, along x. `of_warps` is shared memory for a value a warp, which
/// may be used again at once.
template <class T, class Combine>
__device__ T block_combine(T v, T* of_warps, const Combine& combine) {
  v = warp_combine(v, combine);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = v;
  __syncthreads();
  T total = of_warps[0];
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) total = combine(total, of_warps[w]);
  __syncthreads();
  return total;
}

struct Sum {
  template <class T>
  __device__ T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Largest {  // NaN if either is
  template <class T>
  __device__ T operator()(const T& a, const T& b) const {
    return a >= b || a != a ? a : b;
  }
};

/// Tells the host what is wrong with the numbers of a kernel: the next wait throws `sentence`, an address that the host
/// gave (sentence_of), with the values in the places of its {}. Of several, one is told.
__device__ inline void report(Fault* fault, uint64_t sentence, int64_t a, int64_t b, int64_t c) {
  auto* const word = reinterpret_cast<unsigned long long*>(&fault->sentence);
  if (atomicCAS(word, 0ull, static_cast<unsigned long long>(sentence)) != 0) return;
  fault->values[0] = a;
  fault->values[1] = b;
  fault->values[2] = c;
}
/// A sentence that lives as long as the program, as an argument of a kernel.
inline uint64_t sentence_of(const char* text) { return reinterpret_cast<uint64_t>(text); }

}  // namespace plumb::cuda
