// Lines of a tensor that threads share, in pieces of neighbouring elements.
#pragma once

#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/functors/math.h"

namespace plumb::cuda {

constexpr unsigned kRowThreads = 256, kRowWarps = kRowThreads / kWarp;
constexpr int64_t kLeastOfBlock = 1024;  // elements of a row that a block has work for

/// Values of the lanes or the warps that share a line.
template <class C>
struct RowShared {
  C of[kRowWarps][kWarp];
};

// Who shares a line. Each has piece `first`, then every kStep-th.

/// A warp.
struct ByWarp {
  static constexpr unsigned kStep = kWarp;
  __device__ static unsigned first() { return threadIdx.x % kWarp; }
  template <class C, class Combine>
  __device__ static C all(C v, RowShared<C>*, const Combine& combine) {
    return warp_combine(v, combine);
  }
};
/// A block.
struct ByBlock {
  static constexpr unsigned kStep = kRowThreads;
  __device__ static unsigned first() { return threadIdx.x; }
  template <class C, class Combine>
  __device__ static C all(C v, RowShared<C>* s, const Combine& combine) {
    return block_combine(v, s->of[0], combine);
  }
};
/// A lane of each warp of a block: neighbouring lanes have neighbouring lines.
struct ByLanes {
  static constexpr unsigned kStep = kRowWarps;
  __device__ static unsigned first() { return threadIdx.x / kWarp; }
  template <class C, class Combine>
  __device__ static C all(C v, RowShared<C>* s, const Combine& combine) {
    const unsigned lane = threadIdx.x % kWarp;
    s->of[threadIdx.x / kWarp][lane] = v;
    __syncthreads();
    C total = s->of[0][lane];
    for (unsigned w = 1; w < kRowWarps; ++w) total = combine(total, s->of[w][lane]);
    __syncthreads();
    return total;
  }
};

/// body(i, piece) for the pieces of this thread; i is the offset of the first element. Pieces of more than one element
/// are of lines whose elements are neighbours.
template <class Who, int kEach, class T, class Body>
__device__ void for_pieces(const T* x, int64_t terms, int64_t stride, const Body& body) {
  for (int64_t i = Who::first(); i < terms / kEach; i += Who::kStep) {
    const int64_t at = kEach == 1 ? i * stride : i * kEach;
    body(at, load_piece<kEach>(x + at));
  }
}

/// The largest element of a line, and the sum of e^(element - largest).
template <class C>
struct Exponentials {
  C largest, sum;
};
template <class Who, int kEach, class T>
__device__ Exponentials<Compute<T>> exponentials(const T* x, int64_t terms, int64_t stride, RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  C largest = -std::numeric_limits<C>::infinity(), sum = 0;
  for_pieces<Who, kEach>(x, terms, stride, [&](int64_t, const Piece<T, kEach>& v) {
    for (int j = 0; j < kEach; ++j) largest = Largest()(largest, wide(v.of[j]));
  });
  largest = Who::all(largest, s, Largest());
  for_pieces<Who, kEach>(x, terms, stride, [&](int64_t, const Piece<T, kEach>& v) {
    for (int j = 0; j < kEach; ++j) sum += functors::math::exp(wide(v.of[j]) - largest);
  });
  return {largest, Who::all(sum, s, Sum())};
}

}  // namespace plumb::cuda
