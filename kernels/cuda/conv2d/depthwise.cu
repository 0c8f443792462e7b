// Depthwise convolution forward and by its input: an image from an image, of which a thread has columns of few places.
// By the input it is gathered from all windows that an element is in, so that no two threads add to one.
#include "kernels/cuda/conv2d/depthwise.h"

#include "kernels/cuda/conv2d/depthwise.cuh"

namespace plumb::cuda {
namespace {

using namespace depthwise;

constexpr int kDown = 4;  // places of a column

/// One image from another through a window.
struct Stencil {
  Columns columns;  // of `to`
  Images from, to;
  Reach h, w;
  int32_t taps_h, taps_w, dilation_h, dilation_w;
  bool is_backward, relu;
  Divisor taps;       // of a channel
  Divisor share;      // how many channels of `to` see the same one of `from`
  int64_t sources;    // how many channels of `from` one of `to` sees
  int64_t channels;   // of `to`
  bool has_channels;  // side by side in a block
  SideBySide block;

  /// The weight by which a tap counts: a gradient goes through the window the other way round.
  __device__ int64_t weight(int32_t kh, int32_t kw) const {
    const int64_t tap = int64_t{kh} * taps_w + kw;
    return is_backward ? taps.by - 1 - tap : tap;
  }
};

template <class T>
struct StencilArgs {
  Stencil s;
  const T *from, *weight, *bias;
  T* to;
};

/// What a thread adds up: neighbours of each place of a column.
template <class T, int kEach>
struct Sums {
  Compute<T> of[kDown][kEach] = {};

  template <class Weight>
  __device__ void add(int row, const Piece<T, kEach>& v, const Weight& weight) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) of[row][j] += wide(v.of[j]) * weight(j);
  }
};

/// Adds what the windows of a column see of `plane`. weight(kh, kw)(j) is the weight of neighbour j. kSize: of a dense
/// window, or 0.
template <int kSize, int kEach, class T, class Weight>
__device__ void add_windows(const Stencil& s, const Place& at, const T* plane, const Weight& weight,
                            Sums<T, kEach>& sums) {
  if constexpr (kSize > 0) {
#pragma unroll(kEach == 1 && kSize == 3 ? kSize : 1)  // more would take too many registers
    for (int kw = 0; kw < kSize; ++kw) {
      const int32_t column = s.w.undivided(at.w, kw);
      Piece<T, kEach> rows[kDown + kSize - 1];
      load_rows(rows, plane + column * s.from.w, s.from.h, at.h + s.h.first, column >= 0 ? s.h.extent : 0);
#pragma unroll
      for (int kh = 0; kh < kSize; ++kh) {
        const auto k = weight(kh, kw);
#pragma unroll
        for (int i = 0; i < kDown; ++i) sums.add(i, rows[i + kh], k);
      }
    }
  } else {
    constexpr int kAcross = kEach > 1 ? 1 : 3;  // taps whose elements are under way from memory
#pragma unroll 1
    for (int32_t kh = 0; kh < s.taps_h; ++kh) {
      int32_t rows[kDown];
      for (int i = 0; i < kDown; ++i) rows[i] = at.h + i < s.to.height ? s.h.place(at.h + i, kh * s.dilation_h) : -1;
#pragma unroll 1
      for (int32_t first = 0; first < s.taps_w; first += kAcross) {
        Piece<T, kEach> v[kAcross][kDown]{};
#pragma unroll
        for (int t = 0; t < kAcross; ++t) {
          const int32_t column = first + t < s.taps_w ? s.w.place(at.w, (first + t) * s.dilation_w) : -1;
#pragma unroll
          for (int i = 0; i < kDown; ++i) {
            if (column >= 0 && rows[i] >= 0)
              v[t][i] = load_piece<kEach>(plane + rows[i] * s.from.h + column * s.from.w);
          }
        }
#pragma unroll
        for (int t = 0; t < kAcross; ++t) {
          if (first + t >= s.taps_w) break;
          const auto k = weight(kh, first + t);
          for (int i = 0; i < kDown; ++i) sums.add(i, v[t][i], k);
        }
      }
    }
  }
}

/// Bias and ReLU, and to their places. bias(j) is that of neighbour j.
template <int kEach, class T, class Bias>
__device__ void finish(const StencilArgs<T>& a, const Place& at, const Sums<T, kEach>& sums, const Bias& bias) {
  const Images& to = a.s.to;
  T* const column = a.to + to.plane(at.n, at.c) + at.w * to.w;
  Compute<T> more[kEach] = {};
  if (a.bias) {
    for (int j = 0; j < kEach; ++j) more[j] = bias(j);
  }
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
    if (at.h + i >= to.height) break;
    Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) {
      const Compute<T> v = sums.of[i][j] + more[j];
      y.of[j] = rounded<T>(a.s.relu && v < 0 ? 0 : v);
    }
    store_piece(column + (at.h + i) * to.h, y);
  }
}

/// Neighbours of one channel, or one element alone: they have one weight a tap.
template <class T, int kEach, int kSize>
__global__ void __launch_bounds__(kThreads, kBlocks) depthwise_planes_kernel(const StencilArgs<T> a) {
  const Stencil& s = a.s;
#pragma unroll 1
  for (int64_t i = thread_of_grid(); i < s.columns.count; i += threads_of_grid()) {
    const Place at = s.columns.place(i);
    const int64_t first = s.share.quotient(at.c) * s.sources;
    Sums<T, kEach> sums;
#pragma unroll 1
    for (int64_t source = 0; source < s.sources; ++source) {
      const T* const weights = a.weight + (at.c * s.sources + source) * s.taps.by;
      const auto weight = [&](int32_t kh, int32_t kw) {
        return [v = load(weights + s.weight(kh, kw))](int) { return v; };
      };
      add_windows<kSize>(s, at, a.from + s.from.plane(at.n, first + source), weight, sums);
    }
    finish(a, at, sums, [&](int) { return load(a.bias + at.c); });
  }
}

constexpr int kMostTaps = 49;  // whose weights shared memory holds
template <class T, int kEach>
struct ChannelsShared {
  Piece<T, kEach> weight[kMostTaps][kWarp];
};
/// Neighbours are channels: a block has pieces of them side by side, whose weights it keeps, and some columns of each
/// at a time.
template <class T, int kEach, int kSize>
__global__ void __launch_bounds__(kThreads, kBlocks) depthwise_channels_kernel(const StencilArgs<T> a) {
  auto& kept = shared<ChannelsShared<T, kEach>>();
  const Stencil& s = a.s;
  const unsigned piece = threadIdx.x % s.block.width, slot = threadIdx.x / s.block.width;
  const int64_t first = blockIdx.x * s.block.channels, left = s.channels - first;
  const int64_t here = left < s.block.channels ? left : s.block.channels;
#pragma unroll 1
  for (int64_t i = threadIdx.x; i < here * s.taps.by; i += kThreads) {
    int64_t tap = i;
    const int64_t c = s.taps.divide(tap);
    kept.weight[tap][c / kEach].of[c % kEach] = get(a.weight + first * s.taps.by + i);
  }
  __syncthreads();
  if (slot >= s.block.slots || piece * kEach >= here) return;
#pragma unroll 1
  for (int64_t i = int64_t{blockIdx.y} * s.block.slots + slot; i < s.columns.count;
       i += int64_t{gridDim.y} * s.block.slots) {
    Place at = s.columns.place(i);
    at.c = first + piece * kEach;
    Sums<T, kEach> sums;
    const auto weight = [&](int32_t kh, int32_t kw) {
      return [v = kept.weight[s.weight(kh, kw)][piece]](int j) { return wide(v.of[j]); };
    };
    add_windows<kSize>(s, at, a.from + s.from.plane(at.n, at.c), weight, sums);
    finish(a, at, sums, [&](int j) { return load(a.bias + at.c + j); });
  }
}

// Blocks of channels side by side: few, each of which fetches its weights once.
Grid grid_of(const Runtime& r, const SideBySide& block, int64_t columns) {
  const int64_t turns = (columns + block.slots - 1) / block.slots;
  const int64_t most = (r.properties().is_gpu() ? 8 : 2) * int64_t{r.properties().multiprocessors};
  if (turns == 0 || block.groups == 0) return {{}, {kThreads}};
  const int64_t of_group = std::clamp<int64_t>(most / block.groups, 1, turns);
  return {{static_cast<unsigned>(block.groups), static_cast<unsigned>(of_group)}, {kThreads}};
}

template <class T, int kSize>
std::unique_ptr<Kernel> kernel_of(const char* name, Device device, const Stencil& s, bool has_bias) {
  return own(name, device, 1, [=](const Queue& q, const Launch& l) {
    constexpr int kEach = Vector<T>::kSize;
    const StencilArgs<T> args{s, static_cast<const T*>(l.in[0]), static_cast<const T*>(l.in[1]),
                              has_bias ? static_cast<const T*>(l.in[2]) : nullptr, static_cast<T*>(l.out[0])};
    if (s.has_channels) {
      const Grid grid = grid_of(q.runtime(), s.block, s.columns.count);
      return q.launch<depthwise_channels_kernel<T, kEach, kSize>>(grid, args);
    }
    const Grid grid = grid_over(q.runtime(), s.columns.count, kThreads);
    constexpr int kOfPieces = kSize == 5 ? 0 : kSize;  // their rows would take too many registers
    if (s.columns.each > 1) return q.launch<depthwise_planes_kernel<T, kEach, kOfPieces>>(grid, args);
    q.launch<depthwise_planes_kernel<T, 1, kSize>>(grid, args);
  });
}

template <class T>
Stencil stencil_of(const TensorSpec& from, const TensorSpec& w, const TensorSpec& to, const Conv2dParams& p,
                   bool is_backward) {
  constexpr int kEach = Vector<T>::kSize;
  const int64_t taps = w.shape[2] * w.shape[3], channels = to.shape[1], multiplier = multiplier_of(p, w);
  const auto reach = [&](int axis) {
    if (!is_backward) return reach_of_window(p, from, axis);
    const int64_t first = p.padding[2 * axis] - p.dilation[axis] * (w.shape[2 + axis] - 1);
    return Reach{1, static_cast<int32_t>(first), static_cast<int32_t>(from.shape[2 + axis]), Divisor(p.stride[axis])};
  };
  const bool has_channels = to.layout == Layout::kNhwc && multiplier == 1 && taps <= kMostTaps && channels % kEach == 0;
  const bool has_images = to.layout == Layout::kChwn && to.shape[0] % kEach == 0;
  return {.columns = has_channels ? Columns(to, 1, kDown, 1) : Columns(to, channels, kDown, has_images ? kEach : 1),
          .from = Images(from),
          .to = Images(to),
          .h = reach(0),
          .w = reach(1),
          .taps_h = static_cast<int32_t>(w.shape[2]),
          .taps_w = static_cast<int32_t>(w.shape[3]),
          .dilation_h = p.dilation[0],
          .dilation_w = p.dilation[1],
          .is_backward = is_backward,
          .relu = !is_backward && p.activation == Activation::kRelu,
          .taps = Divisor(taps),
          .share = Divisor(is_backward ? 1 : multiplier),
          .sources = is_backward ? multiplier : 1,
          .channels = channels,
          .has_channels = has_channels,
          .block = SideBySide(channels, kEach)};
}

void offer_stencil(const char* name, const Problem<Conv2dParams>& p, bool is_backward, Candidates& candidates) {
  const TensorSpec &from = p.in[0], &w = p.in[1], &to = p.out[0];
  if (!is_depthwise(w)) return;
  dispatch_compute(to.dtype, [&]<class T>() {
    const Stencil s = stencil_of<T>(from, w, to, p.params, is_backward);
    const int size = dense_size(p.params, w);
    candidates.add("depthwise", [=, device = p.device, has_bias = p.in.size() == 3] {
      switch (size) {
        case 3: return kernel_of<T, 3>(name, device, s, has_bias);
        case 5: return kernel_of<T, 5>(name, device, s, has_bias);
        default: return kernel_of<T, 0>(name, device, s, has_bias);
      }
    });
  });
}

}  // namespace

void offer_depthwise_forward(const Problem<Conv2dParams>& p, Candidates& candidates) {
  offer_stencil("plumb:conv2d_depthwise_forward", p, false, candidates);
}
void offer_depthwise_backward_input(const Problem<Conv2dParams>& p, Candidates& candidates) {
  offer_stencil("plumb:conv2d_depthwise_backward_input", p, true, candidates);
}

}  // namespace plumb::cuda
