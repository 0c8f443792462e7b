// Softmax along lines: kept in registers by those who share a line, or read three times where it is too long for that:
// for its maximum, for the sum, and to be written; after the first time it is in the caches.
#include "kernels/softmax.h"

#include "kernels/cuda/softmax/softmax_across.cuh"
#include "kernels/cuda/softmax/softmax_long.cuh"

namespace plumb {
namespace {

using namespace cuda::softmaxes;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kept::Plan;
using cuda::kept::Share;
using cuda::kept::Way;

template <int kEach, int kPieces, class T, class Who>
__device__ void forward_line(const SoftmaxArgs<T>& a, const Who& who, int64_t at, int terms) {
  using C = Compute<T>;
  Share<T, kEach, kPieces> x;
  C v[kPieces][kEach];
  x.load(who, a.x + at, terms);
  const auto [_, sum] = exponentials(who, x, terms, v, !a.is_log);
  const Scaling<C> scaled(a.is_log, last_step(a.is_log, sum));
  x.each(who, terms, [&](int k, int i) {
    cuda::Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) y.of[j] = cuda::rounded<T>(scaled(v[k][j]));
    cuda::store_piece(a.out + at + i, y);
  });
}

template <int kEach, int kPieces, class T, class Who>
__device__ void backward_line(const SoftmaxArgs<T>& a, const Who& who, int64_t at, int terms) {
  using C = Compute<T>;
  Share<T, kEach, kPieces> dy, y;
  dy.load(who, a.dy + at, terms);
  y.load(who, a.x + at, terms);
  C sum = 0;
  dy.each(who, terms, [&](int k, int) {
    const auto d = dy.of[k].elements(), v = y.of[k].elements();
    for (int j = 0; j < kEach; ++j) sum += cuda::wide(d.of[j]) * (a.is_log ? C(1) : cuda::wide(v.of[j]));
  });
  sum = who.all(sum, cuda::Sum());
  dy.each(who, terms, [&](int k, int i) {
    const auto d = dy.of[k].elements(), v = y.of[k].elements();
    cuda::Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j)
      dx.of[j] = cuda::rounded<T>(a.backward(cuda::wide(d.of[j]), cuda::wide(v.of[j]), sum));
    cuda::store_piece(a.out + at + i, dx);
  });
}

template <bool kBackward, int kEach, int kPieces, class T, class Who>
__device__ void line(const SoftmaxArgs<T>& a, const Who& who, int64_t number, int terms) {
  if constexpr (kBackward) {
    backward_line<kEach, kPieces>(a, who, number * a.terms, terms);
  } else {
    forward_line<kEach, kPieces>(a, who, number * a.terms, terms);
  }
}

template <class T, bool kBackward, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads) softmax_by_lanes_of_warp_kernel(const SoftmaxArgs<T> a) {
  cuda::kept::for_lines_of_lanes(a.count, a.log, [&](const auto& who, int64_t number, bool is_there) {
    line<kBackward, kEach, kPieces>(a, who, number, is_there ? static_cast<int>(a.terms) : 0);
  });
}
template <class T, bool kBackward, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads) softmax_by_whole_blocks_kernel(const SoftmaxArgs<T> a) {
  const cuda::kept::ByWholeBlock<Compute<T>> who{cuda::shared<cuda::RowShared<Compute<T>>>()};
#pragma unroll 1
  for (int64_t i = blockIdx.x; i < a.count; i += gridDim.x)
    line<kBackward, kEach, kPieces>(a, who, i, static_cast<int>(a.terms));
}

// How lines of neighbours are gone over; says so in the arguments, too.
template <class T, bool kBackward, int kEach>
Way<SoftmaxArgs<T>> way_of_rows(const Runtime& r, SoftmaxArgs<T>& a) {
  using P = Plan<T, kEach>;
  const P plan(a.terms);
  a.log = plan.log;
  return plan.template way<SoftmaxArgs<T>, softmax_by_lanes_of_warp_kernel<T, kBackward, kEach, P::kFew>,
                           softmax_by_lanes_of_warp_kernel<T, kBackward, kEach, P::kMany>,
                           softmax_by_whole_blocks_kernel<T, kBackward, kEach, P::kFew>,
                           softmax_by_whole_blocks_kernel<T, kBackward, kEach, P::kMany>,
                           softmax_by_blocks_kernel<T, kBackward, kEach>>(r, a.count);
}

// The same of lines that lie across memory.
template <class T, bool kBackward, int kEach>
Way<SoftmaxArgs<T>> way_across(const Runtime& r, SoftmaxArgs<T>& a) {
  constexpr unsigned kMostLog = 5;  // a warp has neighbours
  a.log = kMostLog;
  const auto kept = [&] { return int64_t{kTermsOfThread<kEach>} * (kRowThreads >> a.log); };
  while (a.log > kLeastLog<T, kEach> && kept() < a.terms) --a.log;
  if (kept() < a.terms) {
    a.strides = cuda::Divisor(a.stride);
    return {cuda::grid_of(r, (a.count + cuda::kWarp - 1) / cuda::kWarp, kRowThreads),
            cuda::kept::launch_on<softmax_by_lanes_kernel<T, kBackward>, SoftmaxArgs<T>>};
  }
  const int64_t lines = int64_t{kEach} << a.log;
  a.strides = cuda::Divisor(a.stride / kEach);
  return {cuda::grid_of(r, (a.count + lines - 1) / lines, kRowThreads),
          cuda::kept::launch_on<softmax_across_kernel<T, kBackward, kEach>, SoftmaxArgs<T>>};
}

// Every line begins at a multiple of its length, or of their distance.
template <class T, bool kBackward>
Way<SoftmaxArgs<T>> way_of(const Runtime& r, SoftmaxArgs<T>& a) {
  constexpr int kEach = cuda::Vector<T>::kSize, kFew = cuda::kFewEach<T>;
  if (a.stride == 1) {
    return a.terms % kEach == 0 ? way_of_rows<T, kBackward, kEach>(r, a) : way_of_rows<T, kBackward, 1>(r, a);
  }
  return a.stride % kEach == 0  ? way_across<T, kBackward, kEach>(r, a)
         : a.stride % kFew == 0 ? way_across<T, kBackward, kFew>(r, a)
                                : way_across<T, kBackward, 1>(r, a);
}

template <class T, bool kBackward>
void offer(const char* name, const Problem<SoftmaxParams>& p, Candidates& candidates) {
  candidates.add("rows", [=, x = p.out[0], dim = p.params.dim, is_log = p.params.log != 0, device = p.device] {
    SoftmaxArgs<T> args{};
    args.terms = x.shape[dim];
    args.count = x.numel() / std::max<int64_t>(1, args.terms);
    args.stride = strides_of(x)[dim];
    args.is_log = is_log;
    const auto way = way_of<T, kBackward>(runtime_of(device), args);
    return cuda::own(name, device, 1, [=](const cuda::Queue& q, const Launch& l) {
      SoftmaxArgs<T> now = args;
      now.dy = kBackward ? static_cast<const T*>(l.in[0]) : nullptr;
      now.x = static_cast<const T*>(l.in[kBackward ? 1 : 0]);
      now.out = static_cast<T*>(l.out[0]);
      way.launch(q, now);
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
