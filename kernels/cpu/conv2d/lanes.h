// Vectors of channels of whole groups. Each input of a group meets each of its outputs in one of as many orders as it
// has channels: in order r, lane i of the inputs is beside lane i ^ r of the outputs
// (simd::exchanged).
#pragma once

#include <algorithm>

#include "kernels/cpu/simd.h"

namespace plumb::cpu {

/// So many channels in vectors, the last of which begins early rather than end late; and how weights and their
/// gradients lie by lanes: (vector, tap, order, lane).
struct LaneVectors {
  int64_t channels, of_group, taps;
  int64_t full() const { return channels / simd::kLanes; }
  int64_t count() const { return simd::vectors_of(channels); }
  int64_t first_channel(int64_t vector) const { return std::min(vector * simd::kLanes, channels - simd::kLanes); }

  // In floats.
  int64_t of_tap() const { return of_group * simd::kLanes; }
  int64_t of_vector() const { return taps * of_tap(); }
  int64_t floats() const { return count() * of_vector(); }
  bool operator==(const LaneVectors&) const = default;

  /// Calls body(place, channel, other) for the places of a tap: the lane's own channel and the one that it meets.
  template <class Body>
  void each_pair(int64_t vector, const Body& body) const {
    const int64_t first = first_channel(vector);
    for (int64_t order = 0; order < of_group; ++order) {
      for (int64_t lane = 0; lane < simd::kLanes; ++lane) {
        body(order * simd::kLanes + lane, first + lane, first + (lane ^ order));
      }
    }
  }
};

/// So many vectors of sums stay in registers, beside the operands of a multiplication.
inline constexpr int kLaneSums = simd::kRegisters > 16 ? 24 : 12;

/// Calls body.operator()<of_group>(), as a constant: a power of two up to kLanes.
template <int most = simd::kLanes, class Body>
auto with_lanes_of_group(int64_t of_group, const Body& body) {
  if constexpr (most > 1) {
    if (of_group != most) return with_lanes_of_group<most / 2>(of_group, body);
  }
  return body.template operator()<most>();
}

}  // namespace plumb::cpu
