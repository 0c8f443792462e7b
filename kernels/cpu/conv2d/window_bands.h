// Convolutions in bf16 whose windows are tiles of AMX where they lie: neighbours of a row of the image are rows of a
// tile, the channels of one pixel its columns, and each tap moves both by a step. Bands of an image, with zeros in the
// place of its padding, are copied into a core's own cache; no window is.
#pragma once

#include <vector>

#include "kernels/cpu/conv2d/window_panels.h"

namespace plumb::cpu {

/// The product of windows over images and of a panel source, whose columns have the depths of a window's taps.
class WindowBands {
 public:
  WindowBands(const ImageWindows& w, int64_t images, int64_t columns, int threads);
  /// Whether there are such products of these windows: a tile's row is of one pixel, and a core's own cache holds a
  /// band.
  bool exist() const;
  /// The memory that a run needs.
  size_t bytes() const { return bytes_; }
  /// c's rows are the windows; its sums are complete.
  void run(const Bfloat16* images, const PanelSource& b, const PackedResult& c, void* memory) const;

 private:
  class Band;
  int64_t depth() const { return w_.taps() / kInWord<Bfloat16>; }
  int64_t column_panels() const { return ceil_div(columns_, kBlockColumns); }
  int64_t rows() const { return images_ * w_.out_height; }
  int64_t rows_of_image(int64_t rows) const { return (rows - 1) * w_.stride_h + (w_.rows - 1) * w_.row_step + 1; }
  int64_t tiles_of(int64_t rows) const;
  int64_t most_images() const;
  int64_t most_pixels() const;
  int64_t band_bytes() const;
  int64_t most_tiles() const;
  void pack(const PanelSource& b, float* panels) const;

  ImageWindows w_;
  int64_t images_, columns_;
  int team_;
  int64_t wide_;               // pixels of a row of a band
  int64_t pixel_;              // elements from one to the next
  int64_t row_of_tiles_;       // rows of tiles from the first window of a row to that of the next
  int64_t band_rows_;          // rows of windows of a band
  std::vector<int64_t> runs_;  // of a window, each of a tile's columns: the offsets from its first pixel in a band
  size_t panels_at_ = 0, bands_at_ = 0, firsts_at_ = 0, places_at_ = 0, bytes_ = 0;
};

}  // namespace plumb::cpu
