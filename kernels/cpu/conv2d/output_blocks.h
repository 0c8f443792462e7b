// The innermost part of a convolution whose lanes are a group's outputs: each input is met by all of them at once.
#pragma once

#include <span>

#include "kernels/cpu/conv2d/lane_blocks.h"

namespace plumb::cpu {

/// Windows that meet the same taps, in one vector of outputs each. Weights lie by (tap, input, lane).
struct OutputWindows : LaneWindows {
  int64_t inputs;              ///< of a tap, neighbours in memory
  int64_t lanes;               ///< of a vector that are outputs; the others are not stored
  int64_t x_vector, y_vector;  ///< from a vector to the next

  void skip_vectors(int64_t n) {
    x += n * x_vector, w += n * w_vector, y += n * y_vector;
    if (bias) bias += n * y_vector;
  }
};

/// Blocks of 1 to so many windows or vectors, by their number - 1.
struct OutputBlocks {
  using Blocks = std::span<const ConvolveBlocksOf<OutputWindows>>;
  Blocks beside;        ///< windows beside one another, of one vector; so are the blocks
  Blocks beside_pairs;  ///< the same of two vectors that meet the same inputs
  Blocks vectors;       ///< one window, of several vectors; so are the blocks
};
OutputBlocks output_blocks();

}  // namespace plumb::cpu
