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
template <class Windows>
using ConvolveBlocksOf = void (*)(Windows& at, int64_t blocks);
using ConvolveBlocks = ConvolveBlocksOf<LaneWindows>;

/// For groups of so many channels: blocks of 1 to so many windows, by their number - 1.
struct LaneBlocks {
  std::span<const ConvolveBlocks> beside;   ///< windows beside one another; so are the blocks
  std::span<const ConvolveBlocks> across;   ///< windows beside one another; a block for each vector
  std::span<const ConvolveBlocks> vectors;  ///< one window for neighbouring vectors; so are the blocks
};
LaneBlocks lane_blocks(int64_t of_group);

/// How n windows are cut into blocks of one size and a rest.
struct LaneCut {
  int64_t size = 1, count = 0, rest = 0;
  template <class Blocks>
  LaneCut(int64_t n, const Blocks& blocks) {
    if (n == 0) return;
    size = ceil_div(n, ceil_div(n, static_cast<int64_t>(blocks.size())));
    count = n / size, rest = n % size;
  }
  template <class Windows, class Blocks>
  void convolve(Windows& at, const Blocks& blocks) const {
    if (count) blocks[static_cast<size_t>(size - 1)](at, count);
    if (rest) blocks[static_cast<size_t>(rest - 1)](at, 1);
  }
};

}  // namespace plumb::cpu
