// Gradients of windows that do not overlap, where a row's places are neighbours (nchw), as one stream of memory: a
// thread has 16 bytes of dx, of whatever rows, and walks over them. By windows, rows of odd lengths would be stored an
// element at a time, each of which is a request to the cache that all share.
#include "kernels/cuda/pooling/pieces.cuh"

namespace plumb::cuda {
namespace {

using namespace pooling;

/// Of a coordinate of x: the window that begins last before it, and how far behind.
struct In {
  int32_t window, place;
};

/// An axis of the windows. Its padding is less than a window.
struct Axis {
  int32_t extent, windows, kernel, stride, before;
  Narrow strides;

  Axis(int64_t x, int64_t y, const Pool2dParams& p, int axis)
      : extent(static_cast<int32_t>(x)),
        windows(static_cast<int32_t>(y)),
        kernel(p.kernel[axis]),
        stride(p.stride[axis]),
        before(p.padding[2 * axis]),
        strides(stride) {}
  __device__ In at(uint32_t i) const {
    uint32_t place = i + static_cast<uint32_t>(before);
    const int32_t window = strides.divide(place);
    return {window, static_cast<int32_t>(place)};
  }
  __device__ void go_on(In& in) const {
    if (++in.place == stride) in = {in.window + 1, 0};
  }
  __device__ bool has(const In& in) const { return in.window < windows && in.place < kernel; }
};

template <class T>
struct StreamArgs {
  int64_t count;
  Narrow widths, heights;
  Axis rows, columns;
  Compute<T> inverse;  // of the elements of a window, of which each has its share of a mean
  const T* dy;
  const uint8_t* index;  // of means: null
  T* dx;
};

/// Where a thread is in x.
template <class T>
struct StreamAt {
  uint32_t w, h;
  int32_t line;  // of y, the first of the plane
  In row, column;

  __device__ StreamAt(const StreamArgs<T>& a, int64_t first)
      : w(static_cast<uint32_t>(first)),
        h(static_cast<uint32_t>(a.widths.divide(w))),
        line(a.heights.divide(h) * a.rows.windows),
        row(a.rows.at(h)),
        column(a.columns.at(w)) {}
  __device__ void to_next_row(const StreamArgs<T>& a) {
    w = 0;
    column = {0, a.columns.before};
    a.rows.go_on(row);
    if (static_cast<int32_t>(++h) < a.rows.extent) return;
    h = 0;
    row = {0, a.rows.before};
    line += a.rows.windows;
  }
};

/// What a row's elements have in common: where their windows begin in y, and their places in those.
struct OfRow {
  bool has;
  int32_t windows, places;

  template <class T>
  __device__ OfRow(const StreamArgs<T>& a, const StreamAt<T>& at)
      : has(a.rows.has(at.row)),
        windows((at.line + at.row.window) * a.columns.windows),
        places(at.row.place * a.columns.kernel) {}
};

/// kIsLong: a row is no shorter than what a thread has, which then is of two of them at most.
template <bool kMax, bool kIsLong, class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) pool_backward_stream_kernel(const StreamArgs<T> a) {
  const Axis& columns = a.columns;
  for_dense<Vector<T>::kSize>(a.count, [&]<int kEach>(int64_t first) {
    StreamAt<T> at(a, first);
    int32_t from[kEach], place[kEach];  // in y, or -1; in the window
    OfRow row(a, at);
    if constexpr (kIsLong) {
      const int32_t left = columns.extent - static_cast<int32_t>(at.w);
      In column = at.column;
      at.to_next_row(a);
      const OfRow next(a, at);
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (j == left) row = next, column = at.column;
        from[j] = row.has && columns.has(column) ? row.windows + column.window : -1;
        place[j] = row.places + column.place;
        columns.go_on(column);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        from[j] = row.has && columns.has(at.column) ? row.windows + at.column.window : -1;
        place[j] = row.places + at.column.place;
        columns.go_on(at.column);
        if (static_cast<int32_t>(++at.w) < columns.extent) continue;
        at.to_next_row(a);
        row = OfRow(a, at);
      }
    }
    Piece<T, kEach> dx{};
    Piece<uint8_t, kEach> places{};
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (from[j] < 0) continue;
      dx.of[j] = get(a.dy + from[j]);
      if constexpr (kMax) places.of[j] = get(a.index + from[j]);
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if constexpr (kMax) {
        if (places.of[j] != place[j]) dx.of[j] = T(0);
      } else {
        dx.of[j] = rounded<T>(wide(dx.of[j]) * a.inverse);
      }
    }
    store_piece(a.dx + first, dx);
  });
}

// A mean's windows must be whole, or count what is beside the image, and be of 1, 2, 4... elements: of others a share
// is divided, as the kernels do that go by windows.
template <bool kMax>
bool has_stream(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const bool overlaps = p.stride[0] < p.kernel[0] || p.stride[1] < p.kernel[1];
  const bool is_padded = p.padding[0] || p.padding[1] || p.padding[2] || p.padding[3];
  const bool is_small =
      x.numel() > 0 && x.numel() < kMost && y.numel() < kMost && p.stride[0] < kMost && p.stride[1] < kMost;
  const bool is_exact = std::has_single_bit(static_cast<uint64_t>(p.kernel[0]) * static_cast<uint64_t>(p.kernel[1]));
  return inner_of(x) == 1 && !overlaps && is_small &&
         (kMax ? pool2d_index_dtype(p) == DType::kU8 : is_exact && (!is_padded || p.count_include_pad != 0));
}

template <bool kMax>
void offer_stream(const char* name, const Problem<Pool2dParams>& p, Candidates& c) {
  const TensorSpec &x = p.out[0], &y = p.in[0];
  if (!has_stream<kMax>(x, y, p.params)) return;
  dispatch_compute(x.dtype, [&]<class T>() {
    constexpr int kFew = Vector<T>::kSize > 2 ? Vector<T>::kSize / 4 : 1;
    if (has_rows(x, p.params, kFew)) return;  // which go by pieces of rows
    const auto window = static_cast<Compute<T>>(int64_t{p.params.kernel[0]} * p.params.kernel[1]);
    const StreamArgs<T> args{x.numel(),
                             Narrow(x.shape[3]),
                             Narrow(x.shape[2]),
                             Axis(x.shape[2], y.shape[2], p.params, 0),
                             Axis(x.shape[3], y.shape[3], p.params, 1),
                             Compute<T>(1) / window,
                             nullptr,
                             nullptr,
                             nullptr};
    offer(c, "stream", name, p.device, 1, [args](const Queue& q, const Launch& l) {
      StreamArgs<T> now = args;
      now.dy = static_cast<const T*>(l.in[0]);
      now.index = kMax ? static_cast<const uint8_t*>(l.in[1]) : nullptr;
      now.dx = static_cast<T*>(l.out[0]);
      const Grid grid = grid_over(q.runtime(), now.count / Vector<T>::kSize + 1, kThreads);
      now.columns.extent >= Vector<T>::kSize ? q.launch<pool_backward_stream_kernel<kMax, true, T>>(grid, now)
                                             : q.launch<pool_backward_stream_kernel<kMax, false, T>>(grid, now);
    });
  });
}

}  // namespace

void offer_max_pool2d_backward_stream(const Problem<Pool2dParams>& p, Candidates& c) {
  offer_stream<true>("plumb:max_pool2d_backward", p, c);
}
void offer_avg_pool2d_backward_stream(const Problem<Pool2dParams>& p, Candidates& c) {
  offer_stream<false>("plumb:avg_pool2d_backward", p, c);
}

}  // namespace plumb::cuda
