// The innermost part of a convolution in groups of few channels: blocks of sums that stay in registers.
#pragma once

#include <span>

#include "kernels/cpu/range.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {

/// Windows that meet the same taps, in one vector of channels each. Distances are in floats.
struct LaneWindows {
  const float *x, *w;  ///< the first tap; weights are by lanes (LaneVectors), a lane is of x
  float* y;
  const float* bias;                         ///< or null
  int64_t rows, columns;                     ///< of taps
  int64_t x_row, x_column, w_row, w_column;  ///< from tap to tap
  int64_t x_step, y_step;                    ///< from a window to that beside it
  int64_t w_vector;                          ///< from a vector to the next
  bool relu;

  void skip_columns(int64_t n) { x += n * x_step, y += n * y_step; }
  void skip_vectors(int64_t n) {
    x += n * simd::kLanes, w += n * w_vector, y += n * simd::kLanes;
    if (bias) bias += n * simd::kLanes;
  }
};

/// Convolves so many blocks of windows, and goes past them.
using ConvolveBlocks = void (*)(LaneWindows& at, int64_t blocks);

/// For groups of so many channels: a block is windows beside one another, or of neighbouring vectors; 1 to so many, by
/// their number - 1.
struct LaneBlocks {
  std::span<const ConvolveBlocks> columns, vectors;
};
LaneBlocks lane_blocks(int64_t of_group);

/// How n windows are cut into blocks of nearly one size.
class LaneCut {
 public:
  LaneCut(int64_t n, std::span<const ConvolveBlocks> by) {
    if (n == 0) return;
    const int64_t size = ceil_div(n, ceil_div(n, static_cast<int64_t>(by.size())));
    count_ = n / size, block_ = by[static_cast<size_t>(size - 1)];
    if (n % size) rest_ = by[static_cast<size_t>(n % size - 1)];
  }
  void convolve(LaneWindows& at) const {
    if (block_) block_(at, count_);
    if (rest_) rest_(at, 1);
  }

 private:
  int64_t count_ = 0;
  ConvolveBlocks block_ = nullptr, rest_ = nullptr;
};

}  // namespace plumb::cpu
