// A run: a few vectors of neighbouring elements of the result of pooling.
#pragma once

#include <algorithm>

#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu::pool {

using simd::IntVec;
using simd::kLanes;
using simd::Vec;

/// n lanes of one pixel, which share their windows, in `vectors` vectors. They fill these if `whole`.
template <int vectors, bool whole>
struct Run {
  static constexpr int kVectors = vectors;
  int64_t n;
  bool streams = false;  ///< whether results in f32 are written past the caches

  /// body(v) for the vectors of the run.
  template <class Body>
  [[gnu::always_inline]] static void each(const Body& body) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) body(v);
  }
  int64_t left(int v) const { return whole ? kLanes : std::clamp<int64_t>(n - v * kLanes, 0, kLanes); }

  /// Vector v of the n elements at p.
  template <class T>
  [[gnu::always_inline]] auto load(const T* p, int v) const {
    return whole ? simd::load(p + v * kLanes) : simd::load(p + v * kLanes, left(v));
  }
  template <class T, class V>
  [[gnu::always_inline]] void store(T* p, int v, V value) const {
    if constexpr (std::is_same_v<T, float>) {
      if (streams && (whole || left(v) == kLanes)) return copy_nontemporal(p + v * kLanes, value);
    }
    whole ? simd::store(p + v * kLanes, value) : simd::store(p + v * kLanes, value, left(v));
  }
  /// Fetches the run at p + from, which need not exist, into the second cache.
  template <class T>
  [[gnu::always_inline]] static void fetch(const T* p, int64_t from) {
    constexpr int64_t kLine = 64, kSize = static_cast<int64_t>(sizeof(T)), kBytes = kVectors * kLanes * kSize;
    for (int64_t i = 0; i < kBytes; i += kLine) simd::fetch<2>(p, from * kSize + i);
  }
};

/// body(run, lane) for runs over the lanes of a pixel.
template <class Body>
[[gnu::always_inline]] inline void each_run(int64_t lanes, bool streams, const Body& body) {
  constexpr int64_t kMost = 4 * kLanes;
  int64_t lane = 0;
  for (; lane + kMost <= lanes; lane += kMost) body(Run<4, true>{kMost, streams}, lane);
  if (lanes - lane > kLanes) return body(Run<4, false>{lanes - lane, streams}, lane);
  if (lanes - lane == kLanes) return body(Run<1, true>{kLanes, streams}, lane);
  if (lane < lanes) body(Run<1, false>{lanes - lane}, lane);
}

}  // namespace plumb::cpu::pool
