// What the forward and the backward kernels of batch normalisation share.
#pragma once

#include "kernels/batch_norm.h"
#include "kernels/cpu/normalization/channel_stats.h"

namespace plumb::cpu {

// The coefficients of a map of each channel: (x - centre) slope + shift [+ dy scale, where (x - centre) scale + beta is
// above 0]. One set per column.
template <class C>
struct Coefficients {
  C *centre, *slope, *shift, *scale, *beta;
  Coefficients(void* memory, int64_t columns)
      : centre(static_cast<C*>(memory)),
        slope(centre + columns),
        shift(slope + columns),
        scale(shift + columns),
        beta(scale + columns) {}
  static size_t bytes(int64_t columns) { return static_cast<size_t>(columns) * 5 * sizeof(C); }
  void set(const Channels& v, int64_t channel, double centre_, double slope_, double shift_, double scale_ = 0) const {
    v.for_columns(channel, [&](int64_t j) {
      centre[j] = static_cast<C>(centre_);
      slope[j] = static_cast<C>(slope_);
      shift[j] = static_cast<C>(shift_);
      scale[j] = static_cast<C>(scale_);
    });
  }
};

inline const char* name_of(const Channels& v) { return v.runs ? "plumb:batch_norm:runs" : "plumb:batch_norm:columns"; }

/// The value of channel c of a parameter or statistic.
template <class C>
double at(const void* values, int64_t c) {
  return static_cast<double>(static_cast<const C*>(values)[c]);
}

inline constexpr int64_t kChannelsAtOnce = 64;

/// Calls body(first, count) for at most kChannelsAtOnce channels at a time.
template <class Body>
void for_channels(const Channels& v, const Body& body) {
  const int64_t work = v.pieces * v.columns / v.channels;
  parallel_for(v.channels, std::max<int64_t>(1, 4096 / work), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c += kChannelsAtOnce) body(c, std::min(kChannelsAtOnce, end - c));
  });
}

/// Calls body(channel) for each.
template <class Body>
void for_each_channel(const Channels& v, const Body& body) {
  for_channels(v, [&](int64_t first, int64_t count) {
    for (int64_t c = first; c < first + count; ++c) body(c);
  });
}

}  // namespace plumb::cpu
