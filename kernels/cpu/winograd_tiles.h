// How an image is cut into tiles, and what the Winograd kernels share besides.
#pragma once

#include <algorithm>

#include "core/spec.h"
#include "kernels/conv2d.h"
#include "kernels/cpu/winograd_rules.h"

namespace plumb::cpu::winograd {

/// True if the problem is one that the kernels here can do: f32, NHWC, 3x3 and dense, and nothing empty.
bool applies(const Conv2dParams& params, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, int m);

/// Bytes of the second-level cache of a core.
int64_t l2_bytes();

/// n floats as a whole, odd number of cache lines: arrays at multiples of this distance do not meet in one cache set.
constexpr int64_t odd_lines(int64_t n) { return ((n + 15) / 16 | 1) * 16; }

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
/// Piece i of n things in `pieces` contiguous pieces of nearly equal size.
inline Range piece(int64_t n, int64_t i, int64_t pieces) { return {n * i / pieces, n * (i + 1) / pieces}; }

/// An NHWC tensor without its batch.
struct Image {
  int64_t h, w, c;
};

/// Squares of elements of an image, at (y, x) in it and partly or wholly outside: outside are zeros.
struct Window {
  int64_t offset;          // of element (0, 0); it may be outside
  int64_t row, column;     // strides
  Range rows, columns;     // of the square, that are inside

  template <int kSize>
  bool is_inside() const {
    return rows.begin == 0 && rows.end == kSize && columns.begin == 0 && columns.end == kSize;
  }
  bool has(int i, int j) const { return i >= rows.begin && i < rows.end && j >= columns.begin && j < columns.end; }
  int64_t at(int i, int j) const { return offset + i * row + j * column; }
};
inline Window window(const Image& image, int64_t n, int64_t y, int64_t x, int size) {
  return {((n * image.h + y) * image.w + x) * image.c,
          image.w * image.c,
          image.c,
          {std::max<int64_t>(0, -y), std::min<int64_t>(size, image.h - y)},
          {std::max<int64_t>(0, -x), std::min<int64_t>(size, image.w - x)}};
}

/// m x m tiles of an output image, batch after batch, row after row; a tile may reach over the edge.
struct TileGrid {
  int64_t n, rows, columns;
  int m;

  TileGrid(int64_t batch, const Image& output, int tile)
      : n(batch), rows((output.h + tile - 1) / tile), columns((output.w + tile - 1) / tile), m(tile) {}
  int64_t count() const { return n * rows * columns; }

  /// body(t - tiles.begin, n, y, x) for each tile t of a range, (y, x) being its first output.
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

/// Applies a rule to a window of `channels` channels: transformed vector v of point (i, j) goes to to(v) + point * distance.
template <class Rule, class To>
void transform_window(const float* image, const Window& window, int64_t channels, int64_t distance, const To& to) {
  const auto vector = [&](auto inside, auto whole, int64_t v) {
    const float* from = image + v * kLanes;
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
