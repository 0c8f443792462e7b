// Gradients of windows that go on by two, by pieces: x in cells of two by two, the first of which begin before it by
// the padding. A window of two by two is a cell, and one of three by three goes on into the cells behind. What is past
// the last window is zeros.
#include "kernels/cuda/pooling/pieces.cuh"

namespace plumb::cuda {
namespace {

using namespace pooling;

template <class T>
struct BackwardArgs {
  Pieces p;
  const T* dy;
  const uint8_t* index;  // of means: null
  T* dx;
};

/// What place t of a window has of its gradient: all or nothing of a maximum. Of a mean it is each one's share already.
template <bool kMax, class T>
__device__ T part(const T& dy, uint8_t place, int t) {
  return !kMax || place == t ? dy : T(0);
}
template <bool kMax, class T, int kEach>
__device__ Piece<T, kEach> shares(Piece<T, kEach> dy, Compute<T> inverse) {
  if constexpr (!kMax) {
    for (auto& v : dy.of) v = rounded<T>(wide(v) * inverse);
  }
  return dy;
}

/// Neighbours of a cell.
template <bool kMax, int kEach, class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) pool_backward_pieces_kernel(const BackwardArgs<T> a) {
  constexpr int kPlanes = kDeep<T, kEach>;
  const Pieces& p = a.p;
  const int32_t inner = kEach == 1 ? 1 : p.inner;
#pragma unroll 1
  for (auto i = static_cast<uint32_t>(thread_of_grid()); i < p.count; i += static_cast<uint32_t>(threads_of_grid())) {
    const Place at = p.place<kEach>(i);
    const int32_t plane = at.plane * kPlanes, first = at.first * kEach, top = p.top(at), left = p.left(at);
    const int32_t from = plane * p.y.all + at.h * p.y.row + at.w * inner + first;
    Held<T, kEach> dy[kPlanes]{};
    Held<uint8_t, kEach> places[kPlanes]{};
    if (at.h < p.y.height && at.w < p.y.width) {
#pragma unroll
      for (int d = 0; d < kPlanes; ++d) {
        dy[d] = load_held<kEach>(a.dy + (from + d * p.y.all));
        if constexpr (kMax) places[d] = load_held<kEach>(a.index + (from + d * p.y.all));
      }
      const Compute<T> inverse = kMax ? Compute<T>(1) : inverse_of<T>(p.divisor<2>(top, left));
#pragma unroll
      for (int d = 0; d < kPlanes; ++d)
        dy[d] = std::bit_cast<Held<T, kEach>>(shares<kMax>(released<T, kEach>(dy[d]), inverse));
    }
    T* const corner = a.dx + (plane * p.x.all + top * p.x.row + left * inner + first);
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      if (!p.x.has(top + t / 2, left + t % 2)) continue;
#pragma unroll
      for (int d = 0; d < kPlanes; ++d) {
        auto dx = released<T, kEach>(dy[d]);
        const auto of_it = released<uint8_t, kEach>(places[d]);
        for (int j = 0; j < kEach; ++j) dx.of[j] = part<kMax>(dx.of[j], of_it.of[j], t);
        store_piece(corner + (d * p.x.all + t / 2 * p.x.row) + t % 2 * inner, dx);
      }
    }
  }
}

/// What the place of the windows' gradients that is `kh`, `kw` within a cell has of them: window t of four begins with
/// the cell, or with the one before it along either axis.
template <int kh, int kw, class T, int kEach>
__device__ Piece<T, kEach> gathered(const Held<T, kEach> (&dy)[4], const Held<uint8_t, kEach> (&places)[4]) {
  Piece<T, kEach> dx;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    Compute<T> sum = 0;
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int h = kh + (t < 2 ? 2 : 0), w = kw + (t % 2 == 0 ? 2 : 0);
      if (h >= 3 || w >= 3) continue;
      if (released<uint8_t, kEach>(places[t]).of[j] == h * 3 + w) sum += wide(released<T, kEach>(dy[t]).of[j]);
    }
    dx.of[j] = rounded<T>(sum);
  }
  return dx;
}

/// Neighbours of a cell, of the largest of three by three.
template <int kEach, class T>
__global__ void __launch_bounds__(kThreads, kFewBlocks) pool_backward_overlap_kernel(const BackwardArgs<T> a) {
  constexpr int kPlanes = kDeep<T, kEach>;
  const Pieces& p = a.p;
  const int32_t inner = kEach == 1 ? 1 : p.inner;
#pragma unroll 1
  for (auto i = static_cast<uint32_t>(thread_of_grid()); i < p.count; i += static_cast<uint32_t>(threads_of_grid())) {
    const Place at = p.place<kEach>(i);
    const int32_t plane = at.plane * kPlanes, first = at.first * kEach, top = p.top(at), left = p.left(at);
    const int32_t from = plane * p.y.all + (at.h - 1) * p.y.row + (at.w - 1) * inner + first;
    Held<T, kEach> dy[kPlanes][4]{};
    Held<uint8_t, kEach> places[kPlanes][4]{};
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      if (!p.y.has(at.h - 1 + t / 2, at.w - 1 + t % 2)) continue;
#pragma unroll
      for (int d = 0; d < kPlanes; ++d) {
        const int32_t here = from + d * p.y.all + t / 2 * p.y.row + t % 2 * inner;
        dy[d][t] = load_held<kEach>(a.dy + here);
        places[d][t] = load_held<kEach>(a.index + here);
      }
    }
    T* const corner = a.dx + (plane * p.x.all + top * p.x.row + left * inner + first);
#pragma unroll
    for (int d = 0; d < kPlanes; ++d) {
      T* const to = corner + d * p.x.all;
      if (p.x.has(top, left)) store_piece(to, gathered<0, 0, T, kEach>(dy[d], places[d]));
      if (p.x.has(top, left + 1)) store_piece(to + inner, gathered<0, 1, T, kEach>(dy[d], places[d]));
      if (p.x.has(top + 1, left)) store_piece(to + p.x.row, gathered<1, 0, T, kEach>(dy[d], places[d]));
      if (p.x.has(top + 1, left + 1)) store_piece(to + p.x.row + inner, gathered<1, 1, T, kEach>(dy[d], places[d]));
    }
  }
}

/// Cells of a row, in nchw, which are as wide as all of it.
template <bool kMax, int kAlong, class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) pool_backward_rows_kernel(const BackwardArgs<T> a) {
  const Pieces& p = a.p;
#pragma unroll 1
  for (auto i = static_cast<uint32_t>(thread_of_grid()); i < p.count; i += static_cast<uint32_t>(threads_of_grid())) {
    const Place at = p.place<1>(i);
    const int32_t from = at.plane * p.y.all + at.h * p.y.row + at.w * kAlong;
    Piece<T, kAlong> dy{};
    Piece<uint8_t, kAlong> places{};
    if (at.h < p.y.height) {
      dy = shares<kMax>(load_piece<kAlong>(a.dy + from), Compute<T>(0.25));
      if constexpr (kMax) places = load_piece<kAlong>(a.index + from);
    }
    T* const corner = a.dx + (at.plane * p.x.all + at.h * 2 * p.x.row + at.w * 2 * kAlong);
#pragma unroll
    for (int kh = 0; kh < 2; ++kh) {
      if (at.h * 2 + kh >= p.x.height) break;
      Piece<T, 2 * kAlong> dx;
#pragma unroll
      for (int j = 0; j < 2 * kAlong; ++j) dx.of[j] = part<kMax>(dy.of[j / 2], places.of[j / 2], kh * 2 + j % 2);
      store_piece(corner + kh * p.x.row, dx);
    }
  }
}

template <auto kFunction, bool kMax, class T>
void offer_pieces(const char* name, const Problem<Pool2dParams>& p, int along, int each, int deep, Candidates& c) {
  const TensorSpec &x = p.out[0], &y = p.in[0];
  const auto cells = [&](int axis) { return (x.shape[2 + axis] + p.params.padding[2 * axis] + 1) / 2; };
  const Pieces pieces(x, y, p.params, cells(0), cells(1), along, each, deep);
  const auto run = [=](const Queue& q, const Launch& l) {
    const BackwardArgs<T> args{pieces, static_cast<const T*>(l.in[0]),
                               kMax ? static_cast<const uint8_t*>(l.in[1]) : nullptr, static_cast<T*>(l.out[0])};
    q.launch<kFunction>(grid_over(q.runtime(), pieces.count, kThreads), args);
  };
  offer(c, "pieces", name, p.device, 1, run);
}

template <bool kMax, class T>
void offer_cells(const char* name, const Problem<Pool2dParams>& p, Candidates& c) {
  constexpr int kEach = Vector<T>::kSize, kAlong = kEach / 2, kFew = kEach > 2 ? kEach / 4 : 1;
  const TensorSpec& x = p.out[0];
  if (has_rows(x, p.params, kAlong)) {
    offer_pieces<pool_backward_rows_kernel<kMax, kAlong, T>, kMax, T>(name, p, kAlong, 1, 1, c);
  } else if (has_rows(x, p.params, kFew)) {
    offer_pieces<pool_backward_rows_kernel<kMax, kFew, T>, kMax, T>(name, p, kFew, 1, 1, c);
  } else {
    for_neighbours<T>(x, [&]<int kHere>() {
      offer_pieces<pool_backward_pieces_kernel<kMax, kHere, T>, kMax, T>(name, p, 1, kHere, kDeep<T, kHere>, c);
    });
  }
}
template <class T>
void offer_overlap(const char* name, const Problem<Pool2dParams>& p, Candidates& c) {
  for_neighbours<T>(p.out[0], [&]<int kHere>() {
    offer_pieces<pool_backward_overlap_kernel<kHere, T>, true, T>(name, p, 1, kHere, kDeep<T, kHere>, c);
  });
}
template <bool kMax>
void offer_backward(const char* name, const Problem<Pool2dParams>& p, Candidates& c) {
  if (p.params.stride[0] != 2 || p.params.stride[1] != 2) return;
  const auto has = [&](int size) { return has_pieces(p.out[0], p.in[0], p.params, size); };
  dispatch_compute(p.in[0].dtype, [&]<class T>() {
    if (has(2)) offer_cells<kMax, T>(name, p, c);
    if constexpr (kMax) {
      if (has(3)) offer_overlap<T>(name, p, c);
    }
  });
}

}  // namespace

void offer_max_pool2d_backward_pieces(const Problem<Pool2dParams>& p, Candidates& c) {
  offer_backward<true>("plumb:max_pool2d_backward", p, c);
}
void offer_avg_pool2d_backward_pieces(const Problem<Pool2dParams>& p, Candidates& c) {
  offer_backward<false>("plumb:avg_pool2d_backward", p, c);
}

}  // namespace plumb::cuda
