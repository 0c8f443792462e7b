// The weights of a Winograd convolution, transformed once per version of w.
#pragma once

#include "dispatch/kernel.h"
#include "kernels/cpu/conv2d/winograd_multiply.h"

namespace plumb::cpu::winograd {

/// The purpose of the transformed weights.
enum class Use {
  kForward,
  kTurned,   ///< backward input by the forward kernel: taps reversed, dy's channels are the input
  kAdjoint,  ///< backward input by the adjoint: dy's channels are the input
};

/// U = G g G^T for every pair of channels. Each of the (m + 2)^2 points has a matrix in panels: rows are the input's
/// channels, columns the output's.
struct WeightPack {
  int m;
  Use use;
  int64_t oc, ic;  // of w

  WeightPack(int tile, Use what_for, const TensorSpec& w) : m(tile), use(what_for), oc(w.shape[0]), ic(w.shape[1]) {}
  int64_t inputs() const { return use == Use::kForward ? ic : oc; }
  int64_t outputs() const { return use == Use::kForward ? oc : ic; }
  Panels panels() const { return {inputs(), vectors_of(outputs())}; }
  /// Floats between the matrices of two neighbouring points.
  int64_t distance() const;
  size_t bytes() const;
  bool operator==(const WeightPack&) const = default;
};

/// The layout of the pack; its packer takes plain w.
Layout pack_layout(const WeightPack& pack);

}  // namespace plumb::cpu::winograd
