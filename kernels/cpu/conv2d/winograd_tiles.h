// How an image is cut into tiles, and what else the Winograd kernels share.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/spec.h"
#include "kernels/conv2d.h"
#include "kernels/cpu/conv2d/winograd_rules.h"
#include "kernels/cpu/range.h"

namespace plumb::cpu::winograd {

using simd::kLanes;
using simd::load;
using simd::store;

/// Whether these kernels can do the problem: f32 or bf16, NHWC, 3x3, stride and dilation 1, nothing empty.
bool applies(const Conv2dParams& params, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, int m);

inline constexpr int64_t kTaps = 9;
/// The number of input channels whose taps are collected from w, or written to dw, at a time.
inline constexpr int64_t kChunk = 16;

/// n floats rounded up to an odd number of cache lines: arrays at multiples of this distance use different cache sets.
constexpr int64_t odd_lines(int64_t n) { return ((n + 15) / 16 | 1) * 16; }

/// The extents of an NHWC tensor without its batch.
struct Image {
  int64_t h, w, c;

  explicit Image(const TensorSpec& s) : h(s.shape[2]), w(s.shape[3]), c(s.shape[1]) {}
};

/// A square of pixels of an image. It may lie partly or wholly outside the image, where pixels are zero.
struct Window {
  int64_t offset;       ///< of pixel (0, 0) of the square, even if that is outside the image
  int64_t row, column;  ///< distances in memory between rows and between columns
  Range rows, columns;  ///< the part of the square that is inside the image

  template <int kSize>
  bool is_inside() const {
    return rows.begin == 0 && rows.end == kSize && columns.begin == 0 && columns.end == kSize;
  }
  bool has(int i, int j) const { return i >= rows.begin && i < rows.end && j >= columns.begin && j < columns.end; }
  int64_t at(int i, int j) const { return offset + i * row + j * column; }
};
/// The square with sides of `size` pixels and its first pixel at (y, x) of image n.
inline Window window(const Image& image, int64_t n, int64_t y, int64_t x, int size) {
  return {((n * image.h + y) * image.w + x) * image.c,
          image.w * image.c,
          image.c,
          {std::max<int64_t>(0, -y), std::min<int64_t>(size, image.h - y)},
          {std::max<int64_t>(0, -x), std::min<int64_t>(size, image.w - x)}};
}

/// The tiles of m x m pixels of all images, row by row and image by image; tiles at the edges may extend beyond them.
struct TileGrid {
  int64_t n, rows, columns;
  int m;

  TileGrid(int64_t batch, const Image& output, int tile)
      : n(batch), rows(ceil_div(output.h, tile)), columns(ceil_div(output.w, tile)), m(tile) {}
  int64_t count() const { return n * rows * columns; }

  /// Calls body(t - tiles.begin, n, y, x) for each tile t of a range; its first pixel is (y, x) of image n.
  template <class Body>
  void for_each(Range tiles, const Body& body) const {
    int64_t column = tiles.begin % columns, rest = tiles.begin / columns, row = rest % rows, image = rest / rows;
    for (int64_t t = 0; t < tiles.size(); ++t) {
      body(t, image, row * m, column * m);
      if (++column < columns) continue;
      column = 0;
      if (++row < rows) continue;
      row = 0;
      ++image;
    }
  }
};

/// Applies a rule to a window, for all channels: vector v of each point goes to to(v) + point * distance. Lanes past
/// the last channel become zero.
template <class Rule, class T, class To>
void transform_window(const T* image, const Window& window, int64_t channels, int64_t distance, const To& to) {
  const auto vector = [&](auto inside, auto whole, int64_t v) {
    const T* from = image + v * kLanes;
    const int64_t tail = channels - v * kLanes;
    float* out = to(v);
    transform<Rule>(
        [&](int i, int j) {
          if (!inside && !window.has(i, j)) return Vec{};
          return whole ? load(from + window.at(i, j)) : load(from + window.at(i, j), tail);
        },
        [&](int i, int j, Vec value) { store(out + (i * Rule::kOut + j) * distance, value); });
  };
  const std::true_type yes;
  const std::false_type no;
  const int64_t whole = channels / kLanes;
  if (window.is_inside<Rule::kIn>()) {
    for (int64_t v = 0; v < whole; ++v) vector(yes, yes, v);
    if (channels % kLanes) vector(yes, no, whole);
  } else {
    for (int64_t v = 0; v < whole; ++v) vector(no, yes, v);
    if (channels % kLanes) vector(no, no, whole);
  }
}

}  // namespace plumb::cpu::winograd
