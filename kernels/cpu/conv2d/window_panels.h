// Windows of images as lines of a packed product: what lies under a window is read there, or copied into panels.
#pragma once

#include <algorithm>

#include "kernels/conv2d.h"
#include "kernels/cpu/gemm/packed_product.h"

namespace plumb::cpu {

/// Windows over images in NHWC. A window's taps are ordered by (row, column, channel); those outside the image are 0.
struct ImageWindows {
  int64_t height, width;          ///< of an image
  int64_t pixel;                  ///< elements from pixel to pixel
  int64_t channels;               ///< of them, from the first on, those that are taken
  int64_t out_height, out_width;  ///< windows of an image
  int64_t top, left;              ///< of the first window; negative in the padding
  int64_t stride_h, stride_w;     ///< from window to window
  int64_t rows, columns;          ///< of a window
  int64_t row_step, column_step;  ///< from one of them to the next

  int64_t taps() const { return rows * columns * channels; }
  /// Taps that are neighbours in memory: a row of the window, or a pixel.
  int64_t run_columns() const { return column_step == 1 && channels == pixel ? columns : 1; }
  int64_t run() const { return run_columns() * channels; }
  /// Whether neighbours overlap or touch.
  bool is_dense() const { return stride_h <= rows && stride_w <= columns; }
};

/// Those i of [0, count) with first + i * step in [0, extent), which may be empty.
inline Range inside(int64_t first, int64_t step, int64_t count, int64_t extent) {
  const int64_t begin = std::min(count, ceil_div(-first, step));
  return {begin, std::clamp(ceil_div(extent - first, step), begin, count)};
}

/// What the pixels of y (NHWC) see of x in the first group.
ImageWindows windows_of(const Shape& x, const Shape& w, const Shape& y, const Conv2dParams& p);

/// Windows as rows of a: at each depth one of their taps. Where taps are neighbours, they are not copied.
class WindowRows final : public PanelSource {
 public:
  WindowRows(const ImageWindows& windows, const float* images) : windows_(windows), images_(images) {}
  void pack(float* to, Range lines, Range depths) const override;
  void multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const override;

 private:
  // Whether stretches are worth it, and take no more memory than panels: one is a pixel's channels long or longer, but
  // for those that the ends of a part of the depth cut.
  bool gathers() const { return windows_.channels >= 3; }
  void pack_panels(float* to, Range lines, Range depths) const;
  void find_stretches(Stretch* to, Range lines, Range depths) const;

  const ImageWindows& windows_;
  const float* images_;
};

/// Taps as columns of b: at each depth one of so many windows; in bf16 two of them are a word. T is float or Bfloat16.
template <class T>
class WindowColumns final : public PanelSource {
 public:
  WindowColumns(const ImageWindows& windows, const T* images, int64_t count)
      : windows_(windows), images_(images), count_(count) {}
  void pack(float* to, Range lines, Range depths) const override;
  RowsAhead ahead(Range lines, Range depths) const override;

 private:
  const ImageWindows& windows_;
  const T* images_;
  int64_t count_;
};

}  // namespace plumb::cpu
