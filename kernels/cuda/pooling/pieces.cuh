// Where the pieces of a pooling lie. In every layout an image is planes of rows of places, and a place is some
// neighbours: one in nchw, the channels in nhwc, the images in chwn. What a thread has is a piece of them, of one plane
// or, where it is less than 16 bytes, of several; or, in nchw, places of a row. Where it lies is found in 32 bits,
// once.
#pragma once

#include <bit>
#include <type_traits>

#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pooling/pieces.h"

namespace plumb::cuda::pooling {

constexpr unsigned kThreads = 256;

/// Planes of which a thread has a piece each.
template <class T, int kEach>
constexpr int kDeep = kEach == Vector<T>::kSize ? 1 : 4 / kEach;

/// A piece as it waits for its use, in words: to choose between two pieces would take an instruction for each element.
template <class T, int kEach>
constexpr bool kIsInWords = sizeof(T) < 4 && kEach * sizeof(T) % 4 == 0;
template <class T, int kEach>
using Held = std::conditional_t<kIsInWords<T, kEach>, Piece<uint32_t, (kEach * sizeof(T) + 3) / 4>, Piece<T, kEach>>;
template <int kEach, class T>
__device__ Held<T, kEach> load_held(const T* p) {
  return get(reinterpret_cast<const Held<T, kEach>*>(p));
}
template <class T, int kEach>
__device__ Piece<T, kEach> released(const Held<T, kEach>& piece) {
  return std::bit_cast<Piece<T, kEach>>(piece);
}

/// Division of numbers below 2^31: a Divisor would ask whether they are.
struct Narrow {
  uint32_t by, factor, shift;

  explicit Narrow(int64_t by_what) {
    const Divisor d(by_what);
    by = static_cast<uint32_t>(by_what);
    factor = d.factor;
    shift = d.shift;
  }
  /// The quotient, and n becomes the remainder.
  __device__ int32_t divide(uint32_t& n) const {
    const auto high = static_cast<uint32_t>((uint64_t{n} * factor) >> 32);
    const uint32_t q = (high + n) >> shift;
    n -= q * by;
    return static_cast<int32_t>(q);
  }
};

/// The elements of a plane.
struct Plane {
  int32_t height, width, row, all;

  Plane(const Shape& s, int64_t inner)
      : height(static_cast<int32_t>(s[2])),
        width(static_cast<int32_t>(s[3])),
        row(static_cast<int32_t>(s[3] * inner)),
        all(static_cast<int32_t>(s[2] * s[3] * inner)) {}
  __device__ bool has(int32_t h, int32_t w) const {
    return static_cast<uint32_t>(h) < static_cast<uint32_t>(height) &&
           static_cast<uint32_t>(w) < static_cast<uint32_t>(width);
  }
};

/// The first plane of a piece, its place in y or among the cells, and its first neighbour.
struct Place {
  int32_t plane, h, w, first;
};

/// How many of `size` numbers from `first` on are those of `extent` places.
__device__ inline int32_t within(int32_t first, int32_t size, int32_t extent) {
  const int32_t end = first + size;
  return (end < extent ? end : extent) - (first > 0 ? first : 0);
}

inline int64_t inner_of(const TensorSpec& s) {
  return s.layout == Layout::kNchw ? 1 : s.layout == Layout::kNhwc ? s.shape[1] : s.shape[0];
}

inline int64_t planes_of(const TensorSpec& s) { return s.shape[0] * s.shape[1] / inner_of(s); }

/// The pieces of y, or of the cells of x: parts of a stride's size, the first of which begin before it by the padding.
struct Pieces {
  Plane x, y;
  int32_t inner, stride[2], before[2];
  bool counts_padding;
  uint32_t count;
  Narrow inners, widths, heights;

  /// `height` by `width` places, of which a piece has `along` of a row, `each` neighbours of a place and `deep` planes.
  Pieces(const TensorSpec& x_spec, const TensorSpec& y_spec, const Pool2dParams& p, int64_t height, int64_t width,
         int along, int each, int deep)
      : x(x_spec.shape, inner_of(x_spec)),
        y(y_spec.shape, inner_of(x_spec)),
        inner(static_cast<int32_t>(inner_of(x_spec))),
        stride{p.stride[0], p.stride[1]},
        before{p.padding[0], p.padding[2]},
        counts_padding(p.count_include_pad != 0),
        inners(inner / each),
        widths(width / along),
        heights(height) {
    const int64_t planes = planes_of(x_spec);
    const int64_t of_plane = height * (width / along) * (inner / each);
    count = static_cast<uint32_t>(planes / deep * of_plane);
  }
  /// The number of piece i along each. kEach: a place has one element if it is 1.
  template <int kEach>
  __device__ Place place(uint32_t i) const {
    Place at;
    uint32_t w = i;
    if constexpr (kEach == 1) {
      i = 0;
    } else {
      w = static_cast<uint32_t>(inners.divide(i));
    }
    uint32_t h = static_cast<uint32_t>(widths.divide(w));
    at.plane = heights.divide(h);
    at.h = static_cast<int32_t>(h);
    at.w = static_cast<int32_t>(w);
    at.first = static_cast<int32_t>(i);
    return at;
  }
  __device__ int32_t top(const Place& at) const { return at.h * stride[0] - before[0]; }
  __device__ int32_t left(const Place& at) const { return at.w * stride[1] - before[1]; }
  /// What the mean of a window that begins there is divided by.
  template <int kSize>
  __device__ int32_t divisor(int32_t top, int32_t left) const {
    return counts_padding ? kSize * kSize : within(top, kSize, x.height) * within(left, kSize, x.width);
  }
};

/// Of 1, 2 or 4, and exact.
template <class T>
__device__ Compute<T> inverse_of(int32_t n) {
  return n == 4 ? Compute<T>(0.25) : n == 2 ? Compute<T>(0.5) : Compute<T>(1);
}

/// Whether windows of `size` are what there is, and all offsets are of 32 bits.
inline bool has_pieces(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p, int size) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return p.kernel[0] == size && p.kernel[1] == size && x.numel() > 0 && x.numel() < kMost && y.numel() < kMost;
}
/// Whether all places of x are pieces of kEach neighbours, and so are its planes of those of several.
template <class T, int kEach>
bool has_neighbours(const TensorSpec& x) {
  const bool are_whole = kEach == 1 ? inner_of(x) == 1 : inner_of(x) % kEach == 0;
  return are_whole && planes_of(x) % kDeep<T, kEach> == 0;
}
/// offer.template operator()<kEach>() for the largest pieces that x has of neighbours, if it has any.
template <class T, class Offer>
void for_neighbours(const TensorSpec& x, const Offer& offer) {
  constexpr int kMost = Vector<T>::kSize;
  if (has_neighbours<T, kMost>(x)) return offer.template operator()<kMost>();
  if constexpr (kMost > 2) {
    if (has_neighbours<T, 2>(x)) return offer.template operator()<2>();
  }
  if (has_neighbours<T, 1>(x)) offer.template operator()<1>();
}
/// Whether rows of y are pieces of `along` under which windows of two by two lie, none beside another's piece.
inline bool has_rows(const TensorSpec& x, const Pool2dParams& p, int along) {
  const bool is_padded = p.padding[0] != 0 || p.padding[1] != 0 || p.padding[2] != 0 || p.padding[3] != 0;
  const auto is_two = [](const auto& extents) { return extents[0] == 2 && extents[1] == 2; };
  const bool is_dense = is_two(p.kernel) && is_two(p.stride) && !is_padded;
  return along > 0 && x.layout == Layout::kNchw && is_dense && x.shape[3] % (2 * along) == 0;
}

}  // namespace plumb::cuda::pooling
