// Softmax along lines. A line is read three times by those who share it: for its maximum, for the sum, and to be
// written; after the first time it is in the caches.
#include "kernels/softmax.h"

#include "kernels/cuda/lines.h"
#include "kernels/cuda/reduction/rows.cuh"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kRowWarps;
using cuda::kWarp;
using cuda::Piece;

template <class T>
struct SoftmaxArgs {
  const T *x, *dy;  // of backward: the result of forward, and its gradient
  T* out;
  cuda::Steps lines;
  int64_t terms, stride;
  bool is_log;
};

template <class Who, int kEach, class T>
__device__ void forward_line(const SoftmaxArgs<T>& a, int64_t at, int64_t terms, cuda::RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  const auto [largest, sum] = cuda::exponentials<Who, kEach>(a.x + at, terms, a.stride, s);
  const C log_sum = a.is_log ? math::log(sum) : C(0), scale = C(1) / sum;
  cuda::for_pieces<Who, kEach>(a.x + at, terms, a.stride, [&](int64_t i, const Piece<T, kEach>& x) {
    Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) {
      const C v = cuda::wide(x.of[j]) - largest;
      y.of[j] = cuda::rounded<T>(a.is_log ? v - log_sum : math::exp(v) * scale);
    }
    cuda::store_piece(a.out + at + i, y);
  });
}

template <class Who, int kEach, class T>
__device__ void backward_line(const SoftmaxArgs<T>& a, int64_t at, int64_t terms, cuda::RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  C sum = 0;
  cuda::for_pieces<Who, kEach>(a.dy + at, terms, a.stride, [&](int64_t i, const Piece<T, kEach>& dy) {
    Piece<T, kEach> y{};
    if (!a.is_log) y = cuda::load_piece<kEach>(a.x + at + i);
    for (int j = 0; j < kEach; ++j) sum += cuda::wide(dy.of[j]) * (a.is_log ? C(1) : cuda::wide(y.of[j]));
  });
  sum = Who::all(sum, s, cuda::Sum());
  cuda::for_pieces<Who, kEach>(a.dy + at, terms, a.stride, [&](int64_t i, const Piece<T, kEach>& dy) {
    const auto y = cuda::load_piece<kEach>(a.x + at + i);
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) {
      const C d = cuda::wide(dy.of[j]), v = cuda::wide(y.of[j]);
      dx.of[j] = cuda::rounded<T>(a.is_log ? d - math::exp(v) * sum : v * (d - sum));
    }
    cuda::store_piece(a.out + at + i, dx);
  });
}

template <class Who, bool kBackward, int kEach, class T>
__device__ void line(const SoftmaxArgs<T>& a, int64_t number, int64_t terms, cuda::RowShared<Compute<T>>* s) {
  const int64_t at = a.lines.of_x(number);
  if constexpr (kBackward) {
    backward_line<Who, kEach>(a, at, terms, s);
  } else {
    forward_line<Who, kEach>(a, at, terms, s);
  }
}

template <class T, bool kBackward>
__global__ void __launch_bounds__(kRowThreads) softmax_by_threads_kernel(const SoftmaxArgs<T> a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.lines.count; i += cuda::threads_of_grid())
    line<cuda::Alone, kBackward, 1>(a, i, a.terms, static_cast<cuda::RowShared<Compute<T>>*>(nullptr));
}
template <class T, bool kBackward>
__global__ void __launch_bounds__(kRowThreads) softmax_by_lanes_kernel(const SoftmaxArgs<T> a) {
  auto& s = cuda::shared<cuda::RowShared<Compute<T>>>();
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.x} * kWarp; first < a.lines.count; first += int64_t{gridDim.x} * kWarp) {
    const int64_t i = first + threadIdx.x % kWarp;
    const bool is_there = i < a.lines.count;  // or it only waits with the others
    line<cuda::ByLanes, kBackward, 1>(a, is_there ? i : 0, is_there ? a.terms : 0, &s);
  }
}
template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads) softmax_by_warps_kernel(const SoftmaxArgs<T> a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid() / kWarp; i < a.lines.count; i += cuda::threads_of_grid() / kWarp)
    line<cuda::ByWarp, kBackward, kEach>(a, i, a.terms, static_cast<cuda::RowShared<Compute<T>>*>(nullptr));
}
template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads) softmax_by_blocks_kernel(const SoftmaxArgs<T> a) {
  auto& s = cuda::shared<cuda::RowShared<Compute<T>>>();
#pragma unroll 1
  for (int64_t i = blockIdx.x; i < a.lines.count; i += gridDim.x)
    line<cuda::ByBlock, kBackward, kEach>(a, i, a.terms, &s);
}

enum class Way { kThreads, kLanes, kWarps, kBlocks };

// Lines side by side go to a thread each, if that makes enough threads or the lines are too short to be shared.
Way way_of(const Runtime& r, const cuda::Lines& l, int64_t terms) {
  if (!l.is_across) return terms < cuda::kLeastOfBlock ? Way::kWarps : Way::kBlocks;
  const int64_t enough = int64_t{4} * kRowThreads * r.properties().multiprocessors;
  return l.lines.count >= enough || terms < int64_t{4} * kRowWarps ? Way::kThreads : Way::kLanes;
}

template <class T, bool kBackward, int kEach>
void launch(const cuda::Queue& q, Way way, const SoftmaxArgs<T>& a) {
  const int64_t of_block = way == Way::kThreads ? kRowThreads
                           : way == Way::kLanes ? kWarp
                           : way == Way::kWarps ? kRowWarps
                                                : 1;
  const cuda::Grid grid = cuda::grid_of(q.runtime(), (a.lines.count + of_block - 1) / of_block, kRowThreads);
  switch (way) {
    case Way::kThreads: return q.launch<softmax_by_threads_kernel<T, kBackward>>(grid, a);
    case Way::kLanes: return q.launch<softmax_by_lanes_kernel<T, kBackward>>(grid, a);
    case Way::kWarps: return q.launch<softmax_by_warps_kernel<T, kBackward, kEach>>(grid, a);
    case Way::kBlocks: return q.launch<softmax_by_blocks_kernel<T, kBackward, kEach>>(grid, a);
  }
}

template <class T, bool kBackward>
void offer(const char* name, const Problem<SoftmaxParams>& p, Candidates& candidates) {
  candidates.add("rows", [=, x = p.out[0], dim = p.params.dim, is_log = p.params.log != 0, device = p.device] {
    const cuda::Lines lines(x, x, 1u << dim);
    const SoftmaxArgs<T> args{nullptr, nullptr, nullptr, lines.lines, x.shape[dim], strides_of(x)[dim], is_log};
    const Way way = way_of(runtime_of(device), lines, args.terms);
    constexpr int kEach = cuda::Vector<T>::kSize;
    const bool has_vectors = args.terms % kEach == 0;  // every line begins at a multiple of its length
    return cuda::own(name, device, 1, [=](const cuda::Queue& q, const Launch& l) {
      SoftmaxArgs<T> now = args;
      now.dy = kBackward ? static_cast<const T*>(l.in[0]) : nullptr;
      now.x = static_cast<const T*>(l.in[kBackward ? 1 : 0]);
      now.out = static_cast<T*>(l.out[0]);
      has_vectors ? launch<T, kBackward, kEach>(q, way, now) : launch<T, kBackward, 1>(q, way, now);
    });
  });
}

}  // namespace

void SoftmaxForward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() { offer<T, false>("plumb:softmax", p, c); });
}
void SoftmaxBackward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() { offer<T, true>("plumb:softmax_backward", p, c); });
}

}  // namespace plumb
