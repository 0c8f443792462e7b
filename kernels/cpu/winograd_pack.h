// The weights of a Winograd convolution, transformed once a version of w.
#pragma once

#include "kernels/cpu/winograd_multiply.h"
#include "kernels/kernel.h"

namespace plumb::cpu::winograd {

/// U = G g G^T for every pair of channels: for each of the (m + 2)^2 points a matrix in panels, its rows the channels
/// of the input and its columns those of the output. `turned` is backward input: taps in reverse, and dy's channels are
/// the input.
struct WeightPack {
  int m;
  bool turned;
  int64_t oc, ic;  // of w

  WeightPack(int tile, bool is_turned, const TensorSpec& w)
      : m(tile), turned(is_turned), oc(w.shape[0]), ic(w.shape[1]) {}
  int64_t inputs() const { return turned ? oc : ic; }
  int64_t outputs() const { return turned ? ic : oc; }
  Panels panels() const { return {inputs(), vectors_of(outputs())}; }
  /// Floats from one point's matrix to the next.
  int64_t distance() const;
  size_t bytes() const;
};

/// The layout of the pack; packing it is a kernel from plain w.
Layout pack_layout(const WeightPack& pack);

}  // namespace plumb::cpu::winograd
