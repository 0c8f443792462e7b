// Elements in the type that arithmetic is done in, one at a time and 16 bytes at a time.
#pragma once

#include "../../kernels/compute.h"
#include "language.h"

namespace plumb::cuda {

using detail::Compute;

template <class T>
__device__ Compute<T> load(const T* p) {
  return static_cast<Compute<T>>(*p);
}
template <class T>
__device__ T rounded(Compute<T> v) {
  return static_cast<T>(v);
}
template <class T>
__device__ void store(T* p, Compute<T> v) {
  *p = rounded<T>(v);
}

/// Some elements, by as few accesses of memory as 16 bytes each allow.
template <class T, int kEach>
struct alignas(kEach * sizeof(T) < 16 ? kEach * sizeof(T) : 16) Piece {
  static constexpr int kSize = kEach;
  T of[kEach];
};
template <int kEach, class T>
__device__ Piece<T, kEach> load_piece(const T* p) {
  return *reinterpret_cast<const Piece<T, kEach>*>(p);
}
template <int kEach, class T>
__device__ void store_piece(T* p, const Piece<T, kEach>& v) {
  *reinterpret_cast<Piece<T, kEach>*>(p) = v;
}
/// Sixteen bytes of elements: one access of memory.
template <class T>
using Vector = Piece<T, 16 / sizeof(T)>;

/// body.template operator()<k>(i) for this thread's part of n elements that are neighbours: for those from i on, k of
/// them, which are kEach, and 1 at the end. Wants a grid_over n / kEach + 1.
template <int kEach, class Body>
__device__ void for_dense(int64_t n, const Body& body) {
  const int64_t pieces = n / kEach;
  for (int64_t i = thread_of_grid(); i < pieces; i += threads_of_grid()) body.template operator()<kEach>(i * kEach);
  if (const int64_t i = pieces * kEach + thread_of_grid(); i < n) body.template operator()<1>(i);
}

}  // namespace plumb::cuda
