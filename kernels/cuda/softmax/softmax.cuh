// What the ways to take a softmax have in common: its arguments, and the numbers that go into memory.
#pragma once

#include "kernels/cuda/divide.h"
#include "kernels/cuda/softmax/kept.cuh"

namespace plumb::cuda::softmaxes {

namespace math = functors::math;

template <class T>
struct SoftmaxArgs {
  const T *x, *dy;  // of backward: the result of forward, and its gradient
  T* out;
  int64_t count, terms, stride;  // lines, of so many elements, so far from each other
  Divisor strides;               // of lines that lie across memory: the same, in pieces
  unsigned log;                  // of the threads that share a line, or of the pieces side by side of a block
  bool is_log;

  /// Where a piece of neighbouring lines begins.
  template <int kEach>
  __device__ int64_t across(int64_t piece) const {
    const int64_t slab = strides.quotient(piece);
    return (slab * (terms - 1) * strides.by + piece) * kEach;
  }
  __device__ Compute<T> backward(Compute<T> d, Compute<T> y, Compute<T> sum) const {
    return is_log ? d - kept::power_below<T>(y) * sum : y * (d - sum);
  }
};

/// What makes results of e^(x - largest), of which softmax is a part, or of what that is the power of.
template <class C>
__device__ C last_step(bool is_log, C sum) {
  return is_log ? -math::log(sum) : C(1) / sum;
}
template <class C>
struct Scaling {
  C scale, shift;
  __device__ Scaling(bool is_log, C last) : scale(is_log ? C(1) : last), shift(is_log ? last : C(0)) {}
  __device__ C operator()(C v) const { return v * scale + shift; }
};

}  // namespace plumb::cuda::softmaxes
