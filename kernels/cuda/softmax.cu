// Softmax along lines. A line is read three times by those who share it: for its maximum, for the sum, and to be written;
// after the first time it is in the caches.
#include "kernels/softmax.h"

#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"
#include "kernels/functors/math.h"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::Compute;
using cuda::kWarp;

constexpr unsigned kThreads = 256;

template <class T>
struct SoftmaxArgs {
  const T *x, *dy;  // of backward: the result of forward, and its gradient
  T* out;
  cuda::Steps lines;
  int64_t terms, stride;
  bool is_log;
};

// Who shares a line: one thread, a warp or a block. Each has term `first`, then every `step`th.
struct Alone {
  static constexpr unsigned kStep = 1;
  __device__ static unsigned first() { return 0; }
  template <class C, class Combine>
  __device__ static C all(C v, C*, const Combine&) {
    return v;
  }
};
struct ByWarp {
  static constexpr unsigned kStep = kWarp;
  __device__ static unsigned first() { return threadIdx.x % kWarp; }
  template <class C, class Combine>
  __device__ static C all(C v, C*, const Combine& combine) {
    return cuda::warp_combine(v, combine);
  }
};
struct ByBlock {
  static constexpr unsigned kStep = kThreads;
  __device__ static unsigned first() { return threadIdx.x; }
  template <class C, class Combine>
  __device__ static C all(C v, C* of_warps, const Combine& combine) {
    return cuda::block_combine(v, of_warps, combine);
  }
};

template <class C>
struct SoftmaxShared {
  C of_warps[kThreads / kWarp];
};

template <class T, class Who>
__device__ void softmax_line(const SoftmaxArgs<T>& a, int64_t line, Compute<T>* of_warps) {
  using C = Compute<T>;
  const int64_t at = a.lines.of_x(line);
  const T* const x = a.x + at;
  C largest = -std::numeric_limits<C>::infinity(), sum = 0;
  for (int64_t i = Who::first(); i < a.terms; i += Who::kStep) largest = cuda::Largest()(largest, cuda::load(x + i * a.stride));
  largest = Who::all(largest, of_warps, cuda::Largest());
  for (int64_t i = Who::first(); i < a.terms; i += Who::kStep) sum += math::exp(cuda::load(x + i * a.stride) - largest);
  sum = Who::all(sum, of_warps, cuda::Sum());
  const C log_sum = a.is_log ? math::log(sum) : C(0);
  for (int64_t i = Who::first(); i < a.terms; i += Who::kStep) {
    const C v = cuda::load(x + i * a.stride) - largest;
    cuda::store(a.out + at + i * a.stride, a.is_log ? v - log_sum : math::exp(v) / sum);
  }
}

template <class T, class Who>
__device__ void softmax_backward_line(const SoftmaxArgs<T>& a, int64_t line, Compute<T>* of_warps) {
  using C = Compute<T>;
  const int64_t at = a.lines.of_x(line);
  const T *const y = a.x + at, *const dy = a.dy + at;
  C sum = 0;
  for (int64_t i = Who::first(); i < a.terms; i += Who::kStep) {
    const C d = cuda::load(dy + i * a.stride);
    sum += a.is_log ? d : d * cuda::load(y + i * a.stride);
  }
  sum = Who::all(sum, of_warps, cuda::Sum());
  for (int64_t i = Who::first(); i < a.terms; i += Who::kStep) {
    const C d = cuda::load(dy + i * a.stride), v = cuda::load(y + i * a.stride);
    cuda::store(a.out + at + i * a.stride, a.is_log ? d - math::exp(v) * sum : v * (d - sum));
  }
}

template <class T, bool kBackward>
__global__ void __launch_bounds__(kThreads) softmax_by_threads_kernel(const SoftmaxArgs<T> a) {
  for (int64_t line = cuda::thread_of_grid(); line < a.lines.count; line += cuda::threads_of_grid())
    kBackward ? softmax_backward_line<T, Alone>(a, line, nullptr) : softmax_line<T, Alone>(a, line, nullptr);
}
template <class T, bool kBackward>
__global__ void __launch_bounds__(kThreads) softmax_by_warps_kernel(const SoftmaxArgs<T> a) {
  for (int64_t line = cuda::thread_of_grid() / kWarp; line < a.lines.count; line += cuda::threads_of_grid() / kWarp)
    kBackward ? softmax_backward_line<T, ByWarp>(a, line, nullptr) : softmax_line<T, ByWarp>(a, line, nullptr);
}
template <class T, bool kBackward>
__global__ void __launch_bounds__(kThreads) softmax_by_blocks_kernel(const SoftmaxArgs<T> a) {
  auto& s = cuda::shared<SoftmaxShared<Compute<T>>>();
  for (int64_t line = blockIdx.x; line < a.lines.count; line += gridDim.x)
    kBackward ? softmax_backward_line<T, ByBlock>(a, line, s.of_warps) : softmax_line<T, ByBlock>(a, line, s.of_warps);
}

template <class T, bool kBackward>
void offer(const char* name, const Problem<SoftmaxParams>& p, Candidates& candidates) {
  candidates.add("rows", [=, x = p.out[0], dim = p.params.dim, is_log = p.params.log != 0, device = p.device] {
    const cuda::Lines lines(x, x, 1u << dim);
    const SoftmaxArgs<T> args{nullptr, nullptr, nullptr, lines.lines, x.shape[dim], strides_of(x)[dim], is_log};
    constexpr int64_t kLeastOfBlock = 1024;
    const bool by_threads = lines.is_across, by_warps = !by_threads && args.terms < kLeastOfBlock;
    const int64_t lines_of_block = by_threads ? kThreads : by_warps ? kThreads / kWarp : 1;
    const int64_t groups = (lines.lines.count + lines_of_block - 1) / lines_of_block;
    return cuda::own(name, device, 1, [=](const cuda::Queue& q, const Launch& l) {
      SoftmaxArgs<T> now = args;
      now.dy = kBackward ? static_cast<const T*>(l.in[0]) : nullptr;
      now.x = static_cast<const T*>(l.in[kBackward ? 1 : 0]);
      now.out = static_cast<T*>(l.out[0]);
      const cuda::Grid grid = cuda::grid_of(q.runtime(), groups, kThreads);
      if (by_threads) return q.launch<softmax_by_threads_kernel<T, kBackward>>(grid, now);
      if (by_warps) return q.launch<softmax_by_warps_kernel<T, kBackward>>(grid, now);
      q.launch<softmax_by_blocks_kernel<T, kBackward>>(grid, now);
    });
  });
}

}  // namespace

void SoftmaxForward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_computed(p.in[0].dtype, [&]<class T>() { offer<T, false>("plumb:softmax", p, c); });
}
void SoftmaxBackward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_computed(p.in[0].dtype, [&]<class T>() { offer<T, true>("plumb:softmax_backward", p, c); });
}

}  // namespace plumb
