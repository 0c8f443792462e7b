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

/// Sixteen bytes of elements: one access of memory.
template <class T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T of[kSize];
};

}  // namespace plumb::cuda
