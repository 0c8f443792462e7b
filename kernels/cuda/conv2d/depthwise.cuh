// What the kernels of depthwise convolutions share: columns of an image, a thread each, and what a window meets.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb::cuda::depthwise {

constexpr unsigned kThreads = 256, kBlocks = 2;  // that a multiprocessor holds at least
/// Where the elements of images lie.
struct Images {
  int64_t n, c, h, w;  // strides
  int32_t height;

  explicit Images(const TensorSpec& s)
      : n(strides_of(s)[0]),
        c(strides_of(s)[1]),
        h(strides_of(s)[2]),
        w(strides_of(s)[3]),
        height(static_cast<int32_t>(s.shape[2])) {}
  __device__ int64_t plane(int64_t image, int64_t channel) const { return image * n + channel * c; }
};

/// The uppermost place of a column: some places, one under another, that a thread has. So neighbouring threads are
/// neighbours in memory, and what the windows of a column share is read once.
struct Place {
  int64_t n, c;
  int32_t h, w;
};

/// The columns of images in their order in memory, `each` neighbours at a time.
struct Columns {
  int64_t count = 1;
  Divisor digit[3];  // innermost first
  Layout layout;
  int down, each;

  /// `places` each; of all channels, or of one of them.
  Columns(const TensorSpec& s, int64_t channels, int places, int neighbours)
      : layout(s.layout), down(places), each(neighbours) {
    const int64_t extents[] = {s.shape[0], channels, (s.shape[2] + down - 1) / down, s.shape[3]};
    const DimOrder order = memory_order(layout, 4);
    for (int i = 0; i < 4; ++i) {
      const int64_t extent = extents[order[3 - i]] / (i == 0 ? each : 1);
      count *= extent;
      if (i < 3) digit[i] = Divisor(std::max<int64_t>(1, extent));
    }
  }
  __device__ Place place(int64_t number) const {
    int64_t a = number;
    int64_t b = digit[0].divide(a);
    int64_t c = digit[1].divide(b);
    const int64_t d = digit[2].divide(c);
    const auto place = [&](int64_t n, int64_t channel, int64_t y, int64_t x) {
      return Place{n, channel, static_cast<int32_t>(y) * down, static_cast<int32_t>(x)};
    };
    if (layout == Layout::kNchw) return place(d, c, b, a);
    if (layout == Layout::kNhwc) return place(d, a * each, c, b);
    return place(a * each, d, c, b);
  }
};

/// Along one dimension: by a tap that is `offset` from the first, a place meets (place * step + first + offset) / by of
/// the other image, where `by` divides that. These are -1 where there is none.
struct Reach {
  int32_t step, first, extent;
  Divisor by;

  __device__ int32_t undivided(int32_t at, int32_t offset) const {
    const int32_t to = at * step + first + offset;
    return to >= 0 && to < extent ? to : -1;
  }
  __device__ int32_t place(int32_t at, int32_t offset) const {
    if (by.by == 1) return undivided(at, offset);
    int64_t rest = at * step + first + offset;
    if (rest < 0) return -1;
    const int64_t to = by.divide(rest);
    return rest == 0 && to < extent ? static_cast<int32_t>(to) : -1;
  }
};

/// The places of x that the window of a place of y meets.
inline Reach reach_of_window(const Conv2dParams& p, const TensorSpec& x, int axis) {
  return {p.stride[axis], -p.padding[2 * axis], static_cast<int32_t>(x.shape[2 + axis]), Divisor(1)};
}

/// `kRows` neighbours from `row` on, zeros where an image of `height` rows has none.
template <int kEach, int kRows, class T>
__device__ void load_rows(Piece<T, kEach> (&to)[kRows], const T* column, int64_t stride, int32_t row, int32_t height) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    to[r] = Piece<T, kEach>{};
    if (row + r >= 0 && row + r < height) to[r] = load_piece<kEach>(column + (row + r) * stride);
  }
}

/// 3 or 5 of a window of so many by as many places that goes on by one, of which a column's come from memory once; 0 of
/// others.
inline int dense_size(const Conv2dParams& p, const TensorSpec& w) {
  const int64_t size = w.shape[2];
  const bool goes_on_by_one = p.stride == Size2d(1) && p.dilation == Size2d(1);
  return goes_on_by_one && w.shape[3] == size && (size == 3 || size == 5) ? static_cast<int>(size) : 0;
}
/// Whether each group has one channel of x.
inline bool is_depthwise(const TensorSpec& w) { return w.shape[1] == 1; }
/// Channels of y of each of x.
inline int64_t multiplier_of(const Conv2dParams& p, const TensorSpec& w) { return w.shape[0] / p.groups; }

/// Channels side by side in a block: pieces of them, and how many columns of each it has at a time.
struct SideBySide {
  unsigned width = 1, slots = kThreads;
  int64_t channels = 0, groups = 0;  // of a block, and how many of those there are

  SideBySide(int64_t all, int each) {
    const int64_t pieces = all / each;
    if (pieces == 0) return;
    groups = (pieces + kWarp - 1) / kWarp;
    width = static_cast<unsigned>((pieces + groups - 1) / groups);
    slots = kThreads / width;
    channels = int64_t{width} * each;
  }
};

}  // namespace plumb::cuda::depthwise
