// Loops over several operands that broadcast to one shape, with as few dimensions as possible.
#pragma once

#include <array>

#include "core/spec.h"

namespace plumb::cpu {

/// Extents and element strides of N operands over the memory order of `shape_of`, adjacent dimensions merged wherever
/// all operands allow it. Dimension 0 is the innermost.
template <size_t N>
struct StridedLoop {
  int rank = 0;
  int64_t extent[kMaxRank] = {};
  std::array<int64_t, kMaxRank> stride[N] = {};

  /// The number of runs along dimension 0.
  int64_t rows() const {
    int64_t n = 1;
    for (int d = 1; d < rank; ++d) n *= extent[d];
    return n;
  }

  /// Offsets of the operands at the start of row `row`.
  std::array<int64_t, N> row_offsets(int64_t row) const {
    std::array<int64_t, N> at{};
    for (int d = 1; d < rank; ++d) {
      const int64_t i = row % extent[d];
      row /= extent[d];
      for (size_t k = 0; k < N; ++k) at[k] += i * stride[k][static_cast<size_t>(d)];
    }
    return at;
  }
};

/// The strides of `operand` when it is broadcast to `to` (aligned at the right; 0 where its extent is 1 or missing).
inline Strides broadcast_strides(const TensorSpec& operand, const Shape& to) {
  const Strides own = strides_of(operand);
  Strides strides;
  const int shift = to.rank() - operand.rank();
  for (int d = 0; d < operand.rank(); ++d) {
    strides.of[d + shift] = operand.shape[d] == 1 && to[d + shift] != 1 ? 0 : own[d];
  }
  return strides;
}

/// The loop over `iterate` in the memory order of its layout, for operands given by their strides over its dimensions.
template <size_t N>
StridedLoop<N> strided_loop(const TensorSpec& iterate, const std::array<Strides, N>& operands) {
  const DimOrder order = memory_order(iterate.layout, iterate.rank());
  StridedLoop<N> loop;
  for (int i = iterate.rank() - 1; i >= 0; --i) {
    const int d = order[i];
    const int64_t extent = iterate.shape[d];
    if (extent == 1) continue;
    bool merges = loop.rank > 0;
    for (size_t k = 0; k < N && merges; ++k) {
      const auto last = static_cast<size_t>(loop.rank - 1);
      merges = operands[k][d] == loop.stride[k][last] * loop.extent[last];
    }
    if (merges) {
      loop.extent[loop.rank - 1] *= extent;
      continue;
    }
    loop.extent[loop.rank] = extent;
    for (size_t k = 0; k < N; ++k) loop.stride[k][static_cast<size_t>(loop.rank)] = operands[k][d];
    ++loop.rank;
  }
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.extent[0] = 1;
  }
  return loop;
}

}  // namespace plumb::cpu
