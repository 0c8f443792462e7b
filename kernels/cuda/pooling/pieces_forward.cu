// Largest and mean of square windows, by pieces: the places of a window are loaded before the first is looked at.
#include <limits>

#include "kernels/cuda/pooling/pieces.cuh"

namespace plumb::cuda {
namespace {

using namespace pooling;

constexpr unsigned kBlocks = 2;  // of nine places each, which are bytes enough

template <class T>
struct ForwardArgs {
  Pieces p;
  const T* x;
  T* y;
  uint8_t* index;  // null where there is none
};

/// A number that was of T: rounding it would change nothing.
template <class T>
__device__ T exact(Compute<T> v) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    T narrow;
    narrow.bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16);
    return narrow;
  } else {
    return v;
  }
}

/// The largest of the places tap(t), or their sum divided. Those outside are the least there is, or zeros. `first` is
/// the first inside; among equals the first counts, among NaNs the last.
template <bool kMax, int kSize, class T, class Tap>
__device__ T pooled(const Tap& tap, int32_t first, Compute<T> divisor, uint8_t& place) {
  constexpr int kTaps = kSize * kSize;
  if constexpr (kMax) {
    Compute<T> largest = wide(tap(0));
#pragma unroll
    for (int t = 1; t < kTaps; ++t) {
      const Compute<T> v = wide(tap(t));
      if (!(v > largest || v != v)) continue;
      largest = v;
      first = t;
    }
    place = static_cast<uint8_t>(first);
    return exact<T>(largest);
  } else {
    Compute<T> sum = 0;
#pragma unroll
    for (int t = 0; t < kTaps; ++t) sum += wide(tap(t));
    return rounded<T>(kSize == 2 ? sum * divisor : sum / divisor);
  }
}
/// The divisor as pooled() takes it.
template <class T, int kSize>
__device__ Compute<T> divisor_of(int32_t n) {
  return kSize == 2 ? inverse_of<T>(n) : static_cast<Compute<T>>(n);
}

/// Neighbours of a place of y.
template <bool kMax, int kSize, int kEach, class T>
__global__ void __launch_bounds__(kThreads, kBlocks) pool_pieces_kernel(const ForwardArgs<T> a) {
  constexpr int kPlanes = kDeep<T, kEach>, kTaps = kSize * kSize;
  const Pieces& p = a.p;
  const int32_t inner = kEach == 1 ? 1 : p.inner;
  Piece<T, kEach> least;
  for (auto& v : least.of) v = kMax ? rounded<T>(-std::numeric_limits<Compute<T>>::infinity()) : T(0);
  const auto outside = std::bit_cast<Held<T, kEach>>(least);
#pragma unroll 1
  for (auto i = static_cast<uint32_t>(thread_of_grid()); i < p.count; i += static_cast<uint32_t>(threads_of_grid())) {
    const Place at = p.place<kEach>(i);
    const int32_t plane = at.plane * kPlanes, first = at.first * kEach, top = p.top(at), left = p.left(at);
    const T* const corner = a.x + (plane * p.x.all + top * p.x.row + left * inner + first);
    Held<T, kEach> taps[kPlanes][kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const bool is_inside = p.x.has(top + t / kSize, left + t % kSize);
#pragma unroll
      for (int d = 0; d < kPlanes; ++d) {
        taps[d][t] = outside;
        if (is_inside) taps[d][t] = load_held<kEach>(corner + (d * p.x.all + t / kSize * p.x.row) + t % kSize * inner);
      }
    }
    const int32_t inside = (top < 0 ? -top * kSize : 0) + (left < 0 ? -left : 0);
    const Compute<T> divisor = kMax ? Compute<T>(0) : divisor_of<T, kSize>(p.divisor<kSize>(top, left));
    const int32_t to = plane * p.y.all + at.h * p.y.row + at.w * inner + first;
#pragma unroll
    for (int d = 0; d < kPlanes; ++d) {
      Piece<T, kEach> y;
      Piece<uint8_t, kEach> places;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const auto tap = [&](int t) { return released<T, kEach>(taps[d][t]).of[j]; };
        y.of[j] = pooled<kMax, kSize, T>(tap, inside, divisor, places.of[j]);
      }
      store_piece(a.y + (to + d * p.y.all), y);
      if constexpr (kMax) {
        if (a.index) store_piece(a.index + (to + d * p.y.all), places);
      }
    }
  }
}

/// Places of a row of y, in nchw, whose windows of two by two lie beside one another.
template <bool kMax, int kAlong, class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) pool_rows_kernel(const ForwardArgs<T> a) {
  const Pieces& p = a.p;
#pragma unroll 1
  for (auto i = static_cast<uint32_t>(thread_of_grid()); i < p.count; i += static_cast<uint32_t>(threads_of_grid())) {
    const Place at = p.place<1>(i);
    const T* const corner = a.x + (at.plane * p.x.all + at.h * 2 * p.x.row + at.w * 2 * kAlong);
    const auto upper = load_piece<2 * kAlong>(corner), lower = load_piece<2 * kAlong>(corner + p.x.row);
    Piece<T, kAlong> y;
    Piece<uint8_t, kAlong> places;
#pragma unroll
    for (int j = 0; j < kAlong; ++j) {
      const auto tap = [&](int t) { return t < 2 ? upper.of[2 * j + t % 2] : lower.of[2 * j + t % 2]; };
      y.of[j] = pooled<kMax, 2, T>(tap, 0, Compute<T>(0.25), places.of[j]);
    }
    const int32_t to = at.plane * p.y.all + at.h * p.y.row + at.w * kAlong;
    store_piece(a.y + to, y);
    if constexpr (kMax) {
      if (a.index) store_piece(a.index + to, places);
    }
  }
}

template <auto kFunction, class T>
void offer_pieces(const char* name, const Problem<Pool2dParams>& p, int along, int each, int deep, Candidates& c) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const Pieces pieces(x, y, p.params, y.shape[2], y.shape[3], along, each, deep);
  const bool writes_index = p.out.size() == 2;
  const auto run = [=](const Queue& q, const Launch& l) {
    const ForwardArgs<T> args{pieces, static_cast<const T*>(l.in[0]), static_cast<T*>(l.out[0]),
                              writes_index ? static_cast<uint8_t*>(l.out[1]) : nullptr};
    q.launch<kFunction>(grid_over(q.runtime(), pieces.count, kThreads), args);
  };
  offer(c, "pieces", name, p.device, 1, run);
}

template <bool kMax, int kSize, class T>
void offer_size(const char* name, const Problem<Pool2dParams>& p, Candidates& c) {
  constexpr int kEach = Vector<T>::kSize;
  const TensorSpec& x = p.in[0];
  if (!has_pieces(x, p.out[0], p.params, kSize)) return;
  if constexpr (kSize == 2) {
    constexpr int kAlong = kEach / 2, kFew = kEach > 2 ? kEach / 4 : 1;
    if (has_rows(x, p.params, kAlong)) {
      return offer_pieces<pool_rows_kernel<kMax, kAlong, T>, T>(name, p, kAlong, 1, 1, c);
    }
    if (has_rows(x, p.params, kFew)) return offer_pieces<pool_rows_kernel<kMax, kFew, T>, T>(name, p, kFew, 1, 1, c);
  }
  const auto neighbours = [&]<int kHere>() {
    offer_pieces<pool_pieces_kernel<kMax, kSize, kHere, T>, T>(name, p, 1, kHere, kDeep<T, kHere>, c);
  };
  for_neighbours<T>(x, neighbours);
}
template <bool kMax>
void offer_forward(const char* name, const Problem<Pool2dParams>& p, Candidates& c) {
  dispatch_compute(p.in[0].dtype, [&]<class T>() {
    offer_size<kMax, 2, T>(name, p, c);
    offer_size<kMax, 3, T>(name, p, c);
  });
}

}  // namespace

void offer_max_pool2d_pieces(const Problem<Pool2dParams>& p, Candidates& c) {
  offer_forward<true>("plumb:max_pool2d", p, c);
}
void offer_avg_pool2d_pieces(const Problem<Pool2dParams>& p, Candidates& c) {
  offer_forward<false>("plumb:avg_pool2d", p, c);
}

}  // namespace plumb::cuda
