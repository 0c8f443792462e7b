// Softmax of lines that are too long for registers: they are read again for every step.
#pragma once

#include "kernels/cuda/softmax/softmax.cuh"

namespace plumb::cuda::softmaxes {

template <class Who, int kEach, class T>
__device__ void forward_long(const SoftmaxArgs<T>& a, int64_t at, int64_t terms, RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  const auto [largest, sum] = cuda::exponentials<Who, kEach>(a.x + at, terms, a.stride, s);
  const Scaling<C> scaled(a.is_log, last_step(a.is_log, sum));
  for_pieces<Who, kEach>(a.x + at, terms, a.stride, [&](int64_t i, const Piece<T, kEach>& x) {
    Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) {
      const C v = wide(x.of[j]) - largest;
      y.of[j] = rounded<T>(scaled(a.is_log ? v : kept::power_below<T>(v)));
    }
    store_piece(a.out + at + i, y);
  });
}

template <class Who, int kEach, class T>
__device__ void backward_long(const SoftmaxArgs<T>& a, int64_t at, int64_t terms, RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  C sum = 0;
  for_pieces<Who, kEach>(a.dy + at, terms, a.stride, [&](int64_t i, const Piece<T, kEach>& dy) {
    Piece<T, kEach> y{};
    if (!a.is_log) y = load_piece<kEach>(a.x + at + i);
    for (int j = 0; j < kEach; ++j) sum += wide(dy.of[j]) * (a.is_log ? C(1) : wide(y.of[j]));
  });
  sum = Who::all(sum, s, Sum());
  for_pieces<Who, kEach>(a.dy + at, terms, a.stride, [&](int64_t i, const Piece<T, kEach>& dy) {
    const auto y = load_piece<kEach>(a.x + at + i);
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) dx.of[j] = rounded<T>(a.backward(wide(dy.of[j]), wide(y.of[j]), sum));
    store_piece(a.out + at + i, dx);
  });
}

template <class Who, bool kBackward, int kEach, class T>
__device__ void long_line(const SoftmaxArgs<T>& a, int64_t at, int64_t terms, RowShared<Compute<T>>* s) {
  if constexpr (kBackward) {
    backward_long<Who, kEach>(a, at, terms, s);
  } else {
    forward_long<Who, kEach>(a, at, terms, s);
  }
}

template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads) softmax_by_blocks_kernel(const SoftmaxArgs<T> a) {
  auto& s = shared<RowShared<Compute<T>>>();
#pragma unroll 1
  for (int64_t i = blockIdx.x; i < a.count; i += gridDim.x)
    long_line<ByBlock, kBackward, kEach>(a, i * a.terms, a.terms, &s);
}

/// Lines side by side, a lane of every warp for each.
template <class T, bool kBackward>
__global__ void __launch_bounds__(kRowThreads) softmax_by_lanes_kernel(const SoftmaxArgs<T> a) {
  auto& s = shared<RowShared<Compute<T>>>();
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.x} * kWarp; first < a.count; first += int64_t{gridDim.x} * kWarp) {
    const int64_t i = first + threadIdx.x % kWarp;
    const bool is_there = i < a.count;  // or it only waits with the others
    long_line<ByLanes, kBackward, 1>(a, is_there ? a.template across<1>(i) : 0, is_there ? a.terms : 0, &s);
  }
}

}  // namespace plumb::cuda::softmaxes
