// Elements in the type that arithmetic is done in, one at a time and 16 bytes at a time.
#pragma once

#include <algorithm>
#include <type_traits>

#include "../../kernels/compute.h"
#include "language.h"

namespace plumb::cuda {

using detail::Compute;

/// Elements of memory; the emulated device counts their bytes, and may look where they lie.
template <class T>
__device__ T get(const T* p) {
  count_read(p, sizeof(T));
  return *p;
}
template <class T>
__device__ void put(T* p, const T& v) {
  count_written(p, sizeof(T));
  *p = v;
}

template <class T>
__device__ Compute<T> wide(const T& v) {
  return static_cast<Compute<T>>(v);
}
template <class T>
__device__ T rounded(Compute<T> v) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, Bfloat16>) {  // one instruction, where the arithmetic of the host takes six
    Bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
    return r;
  }
#endif
  return static_cast<T>(v);
}
template <class T>
__device__ Compute<T> load(const T* p) {
  return wide(get(p));
}
template <class T>
__device__ void store(T* p, Compute<T> v) {
  put(p, rounded<T>(v));
}

/// Some elements, by as few accesses of memory as 16 bytes each allow.
template <class T, int kEach>
struct alignas(kEach * sizeof(T) < 16 ? kEach * sizeof(T) : 16) Piece {
  static constexpr int kSize = kEach;
  T of[kEach];
};
template <int kEach, class T>
__device__ Piece<T, kEach> load_piece(const T* p) {
  return get(reinterpret_cast<const Piece<T, kEach>*>(p));
}
template <int kEach, class T>
__device__ void store_piece(T* p, const Piece<T, kEach>& v) {
  put(reinterpret_cast<Piece<T, kEach>*>(p), v);
}
/// Sixteen bytes of elements: one access of memory.
template <class T>
using Vector = Piece<T, 16 / sizeof(T)>;
/// As many elements as still lie side by side where a row of an odd size ends sixteen bytes in the middle: of two bytes
/// half as many as sixteen bytes have, which is what memory needs to be kept busy.
template <class T>
constexpr int kFewEach = std::min<int>(4, Vector<T>::kSize);

/// fetch(i), which reads, and put(i, what it gave) for this thread's part of n elements of T that lie anywhere. Several
/// are under way from memory at a time: with one of a few bytes, a device would wait most of the time.
template <class T, class Fetch, class Put>
__device__ void for_scattered(int64_t n, const Fetch& fetch, const Put& put) {
  constexpr int kUnderWay = sizeof(T) >= 4 ? 4 : 8;
  const int64_t step = threads_of_grid();
  int64_t i = thread_of_grid();
#pragma unroll 1
  for (; i + (kUnderWay - 1) * step < n; i += kUnderWay * step) {
    decltype(fetch(i)) v[kUnderWay];
#pragma unroll
    for (int j = 0; j < kUnderWay; ++j) v[j] = fetch(i + j * step);
#pragma unroll
    for (int j = 0; j < kUnderWay; ++j) put(i + j * step, v[j]);
  }
#pragma unroll 1
  for (; i < n; i += step) put(i, fetch(i));
}

/// body.template operator()<k>(i) for this thread's part of n elements that are neighbours: for those from i on, k of
/// them, which are kEach, and 1 at the end. Wants a grid_over n / kEach + 1.
template <int kEach, class Body>
__device__ void for_dense(int64_t n, const Body& body) {
  const int64_t pieces = n / kEach;
#pragma unroll 1
  for (int64_t i = thread_of_grid(); i < pieces; i += threads_of_grid()) body.template operator()<kEach>(i * kEach);
  if (const int64_t i = pieces * kEach + thread_of_grid(); i < n) body.template operator()<1>(i);
}

}  // namespace plumb::cuda
