// Depthwise convolution by its weights: a thread adds up what a few taps see along columns of y, a block what its
// threads have, and where few blocks would have much to do, each has a part, which a second launch adds up.
#include "kernels/cuda/conv2d/depthwise.cuh"
#include "kernels/cuda/conv2d/depthwise.h"

namespace plumb::cuda {
namespace {

using namespace depthwise;

constexpr int kTaps = 9, kDown = 2;  // taps and places of a column that a thread has at a time
// Neighbours that it has; of eight, the sums would take too many registers.
template <class T>
constexpr int kMostEach = std::min(4, Vector<T>::kSize);

struct WeightSums {
  Columns columns;  // of a channel of y
  Images x, y;
  Reach h, w;
  int32_t dilation_h, dilation_w;
  Divisor taps_w;
  int64_t taps, channels, cuts;  // channels of y
  Divisor share;                 // channels of y that see one channel of x
  bool has_channels;             // side by side in a block
  int each;
  SideBySide block;
};

template <class T>
struct WeightArgs {
  WeightSums s;
  const T *x, *dy;
  T* dw;
  Compute<T>* parts;  // (cut, channel, tap), if there are several cuts
};

/// Some taps by their distances from the first. Those past the last are further than any image reaches.
struct Taps {
  int32_t h[kTaps], w[kTaps];

  __device__ Taps(const WeightSums& s, int64_t first) {
    constexpr int32_t kNowhere = 1 << 30;
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      int64_t kw = first + t;
      const int64_t kh = s.taps_w.divide(kw);
      const bool is_there = first + t < s.taps;
      h[t] = is_there ? static_cast<int32_t>(kh) * s.dilation_h : 0;
      w[t] = is_there ? static_cast<int32_t>(kw) * s.dilation_w : kNowhere;
    }
  }
};

/// add(t, x, dy) for what tap t sees of each place of a column, of which all are there (kWhole) or the upper ones.
/// kSize: of a dense window, or 0.
template <int kSize, int kEach, bool kWhole, class T, class Add>
__device__ void for_column(const WeightSums& s, const Taps& taps, const Place& at, const T* x, const T* dy,
                           const Add& add) {
  const auto is_there = [&](int i) { return kWhole || at.h + i < s.y.height; };
  Piece<T, kEach> of_y[kDown];
  load_rows(of_y, dy + at.w * s.y.w, s.y.h, at.h, s.y.height);
  if constexpr (kSize > 0) {
#pragma unroll
    for (int kw = 0; kw < kSize; ++kw) {
      const int32_t column = s.w.undivided(at.w, kw);
      Piece<T, kEach> rows[kDown + kSize - 1];
      load_rows(rows, x + column * s.x.w, s.x.h, at.h + s.h.first, column >= 0 ? s.h.extent : 0);
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        if (!is_there(i)) break;
#pragma unroll
        for (int kh = 0; kh < kSize; ++kh) add(kh * kSize + kw, rows[i + kh], of_y[i]);
      }
    }
  } else {
    constexpr int kTogether = sizeof(T) == 2 ? 3 : 1;  // taps whose elements are under way from memory
#pragma unroll
    for (int first = 0; first < kTaps; first += kTogether) {
      Piece<T, kEach> rows[kTogether][kDown]{};
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int t = first + k;
        const int32_t column = s.w.undivided(at.w, taps.w[t]);
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          const int32_t row = is_there(i) ? s.h.undivided(at.h + i, taps.h[t]) : -1;
          if (column >= 0 && row >= 0) rows[k][i] = load_piece<kEach>(x + row * s.x.h + column * s.x.w);
        }
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          if (is_there(i)) add(first + k, rows[k][i], of_y[i]);
        }
      }
    }
  }
}
template <int kSize, int kEach, class T, class Add>
__device__ void for_products(const WeightSums& s, const Taps& taps, const Place& at, const T* x, const T* dy,
                             const Add& add) {
  if (kSize > 0 && at.h + kDown <= s.y.height) {
    for_column<kSize, kEach, true>(s, taps, at, x, dy, add);
  } else {
    for_column<kSize, kEach, false>(s, taps, at, x, dy, add);
  }
}

template <class T>
__device__ void finish(const WeightArgs<T>& a, int64_t channel, int64_t tap, Compute<T> sum) {
  const int64_t to = channel * a.s.taps + tap;
  if (a.s.cuts == 1) {
    store(a.dw + to, sum);
  } else {
    put(a.parts + int64_t{blockIdx.y} * a.s.channels * a.s.taps + to, sum);
  }
}

template <class C>
struct PlanesShared {
  C of_warps[kThreads / kWarp];
};
/// Neighbours of one channel: a block has the sums of a channel, or a part of them.
template <class T, int kEach, int kSize>
__global__ void __launch_bounds__(kThreads, kBlocks) depthwise_weight_planes_kernel(const WeightArgs<T> a) {
  using C = Compute<T>;
  auto& shared_sums = shared<PlanesShared<C>>();
  const WeightSums& s = a.s;
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.z} * kTaps; first < s.taps; first += int64_t{gridDim.z} * kTaps) {
    const Taps taps(s, first);
#pragma unroll 1
    for (int64_t channel = blockIdx.x; channel < s.channels; channel += gridDim.x) {
      C sum[kTaps] = {};
#pragma unroll 1
      for (int64_t i = int64_t{blockIdx.y} * kThreads + threadIdx.x; i < s.columns.count; i += s.cuts * kThreads) {
        const Place at = s.columns.place(i);
        const T* const x = a.x + s.x.plane(at.n, s.share.quotient(channel));
        for_products<kSize, kEach>(s, taps, at, x, a.dy + s.y.plane(at.n, channel),
                                   [&](int t, const Piece<T, kEach>& v, const Piece<T, kEach>& dy) {
                                     for (int j = 0; j < kEach; ++j) sum[t] += wide(v.of[j]) * wide(dy.of[j]);
                                   });
      }
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        if (first + t >= s.taps) break;
        const C total = block_combine(sum[t], shared_sums.of_warps, Sum());
        if (threadIdx.x == 0) finish(a, channel, first + t, total);
      }
    }
  }
}

template <class C, int kEach>
struct ChannelSumsShared {
  C of[kThreads * kEach];
};
/// Neighbours are channels: a block has pieces of them side by side, and of each some columns at a time.
template <class T, int kEach, int kSize>
__global__ void __launch_bounds__(kThreads, kBlocks) depthwise_weight_channels_kernel(const WeightArgs<T> a) {
  using C = Compute<T>;
  auto& shared_sums = shared<ChannelSumsShared<C, kEach>>();
  const WeightSums& s = a.s;
  const unsigned piece = threadIdx.x % s.block.width, slot = threadIdx.x / s.block.width;
  const int64_t first = blockIdx.x * s.block.channels, channel = first + piece * kEach;
  const bool is_there = slot < s.block.slots && channel < s.channels;
#pragma unroll 1
  for (int64_t first_tap = int64_t{blockIdx.z} * kTaps; first_tap < s.taps; first_tap += int64_t{gridDim.z} * kTaps) {
    const Taps taps(s, first_tap);
    C sum[kTaps][kEach] = {};
    int64_t i = is_there ? int64_t{blockIdx.y} * s.block.slots + slot : s.columns.count;
#pragma unroll 1
    for (; i < s.columns.count; i += s.cuts * s.block.slots) {
      const Place at = s.columns.place(i);
      const T* const x = a.x + s.x.plane(at.n, s.share.quotient(channel));
      for_products<kSize, kEach>(s, taps, at, x, a.dy + s.y.plane(at.n, channel),
                                 [&](int t, const Piece<T, kEach>& v, const Piece<T, kEach>& dy) {
                                   for (int j = 0; j < kEach; ++j) sum[t][j] += wide(v.of[j]) * wide(dy.of[j]);
                                 });
    }
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      if (first_tap + t >= s.taps) break;
      for (int j = 0; j < kEach; ++j) shared_sums.of[threadIdx.x * kEach + static_cast<unsigned>(j)] = sum[t][j];
      __syncthreads();
      if (threadIdx.x < s.block.channels && first + threadIdx.x < s.channels) {
        C total = 0;
        for (unsigned k = 0; k < s.block.slots; ++k) total += shared_sums.of[k * s.block.channels + threadIdx.x];
        finish(a, first + threadIdx.x, first_tap + t, total);
      }
      __syncthreads();
    }
  }
}

/// The parts of each sum: a warp each.
template <class T>
__global__ void __launch_bounds__(kThreads) depthwise_weight_parts_kernel(const WeightArgs<T> a) {
  const int64_t n = a.s.channels * a.s.taps;
#pragma unroll 1
  for (int64_t i = thread_of_grid() / kWarp; i < n; i += threads_of_grid() / kWarp) {
    Compute<T> sum = 0;
    for (int64_t part = threadIdx.x % kWarp; part < a.s.cuts; part += kWarp) sum += get(a.parts + part * n + i);
    sum = warp_combine(sum, Sum());
    if (threadIdx.x % kWarp == 0) store(a.dw + i, sum);
  }
}

template <class T>
WeightSums sums_of(const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, const Conv2dParams& p) {
  const int64_t multiplier = multiplier_of(p, w), channels = y.shape[1];
  const bool has_channels = y.layout == Layout::kNhwc;
  int each = 1;
  if (has_channels && multiplier == 1 && channels % kMostEach<T> == 0) each = kMostEach<T>;
  if (y.layout == Layout::kChwn && y.shape[0] % kMostEach<T> == 0) each = kMostEach<T>;
  return {.columns = Columns(y, 1, kDown, has_channels ? 1 : each),
          .x = Images(x),
          .y = Images(y),
          .h = reach_of_window(p, x, 0),
          .w = reach_of_window(p, x, 1),
          .dilation_h = p.dilation[0],
          .dilation_w = p.dilation[1],
          .taps_w = Divisor(std::max<int64_t>(1, w.shape[3])),
          .taps = w.shape[2] * w.shape[3],
          .channels = channels,
          .cuts = 1,
          .share = Divisor(multiplier),
          .has_channels = has_channels,
          .each = each,
          .block = SideBySide(channels, each)};
}

template <class T, int kSize>
std::unique_ptr<Kernel> kernel_of(Device device, WeightSums s) {
  const Runtime& runtime = runtime_of(device);
  const int64_t chunks = (s.taps + kTaps - 1) / kTaps;
  Grid grid = grid_of(runtime, s.channels, kThreads);
  if (s.has_channels) grid.blocks.x = static_cast<unsigned>(s.block.groups);
  grid.blocks.z = grid_of(runtime, chunks, kThreads).blocks.x;
  // Few sums of many products would leave most of the device idle.
  constexpr int64_t kLeastTurns = 2, kMostCuts = 1024;
  const int64_t wanted = int64_t{4} * runtime.properties().multiprocessors,
                blocks = std::max<int64_t>(1, int64_t{grid.blocks.x} * grid.blocks.z),
                turns = s.columns.count / (s.has_channels ? s.block.slots : kThreads);
  s.cuts = std::clamp<int64_t>(std::min(wanted / blocks, turns / kLeastTurns), 1, kMostCuts);
  grid.blocks.y = static_cast<unsigned>(s.cuts);
  const int64_t weights = s.channels * s.taps;
  auto kernel =
      own("plumb:conv2d_depthwise_backward_weight", device, s.cuts > 1 ? 2 : 1, [=](const Queue& q, const Launch& l) {
        constexpr int kEach = kMostEach<T>;
        const WeightArgs<T> args{s, static_cast<const T*>(l.in[1]), static_cast<const T*>(l.in[0]),
                                 static_cast<T*>(l.out[0]), static_cast<Compute<T>*>(l.workspace)};
        if (s.has_channels) {
          s.each > 1 ? q.launch<depthwise_weight_channels_kernel<T, kEach, kSize>>(grid, args)
                     : q.launch<depthwise_weight_channels_kernel<T, 1, kSize>>(grid, args);
        } else {
          s.each > 1 ? q.launch<depthwise_weight_planes_kernel<T, kEach, kSize>>(grid, args)
                     : q.launch<depthwise_weight_planes_kernel<T, 1, kSize>>(grid, args);
        }
        if (s.cuts > 1) q.launch<depthwise_weight_parts_kernel<T>>(grid_over(q.runtime(), weights * kWarp), args);
      });
  if (s.cuts > 1)
    kernel->info().workspace_bytes = static_cast<size_t>(s.cuts) * static_cast<size_t>(weights) * sizeof(Compute<T>);
  return kernel;
}

}  // namespace

void offer_depthwise_backward_weight(const Problem<Conv2dParams>& p, Candidates& candidates) {
  const TensorSpec &y = p.in[0], &x = p.in[1], &w = p.out[0];
  if (!is_depthwise(w)) return;
  dispatch_compute(w.dtype, [&]<class T>() {
    const bool is_dense_3x3 = dense_size(p.params, w) == 3;
    candidates.add("depthwise", [=, s = sums_of<T>(x, w, y, p.params), device = p.device] {
      return is_dense_3x3 ? kernel_of<T, 3>(device, s) : kernel_of<T, 0>(device, s);
    });
  });
}

}  // namespace plumb::cuda
