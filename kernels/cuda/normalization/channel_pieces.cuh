// Channels in memory, and the pieces of one that a thread goes over.
#pragma once

#include <algorithm>
#include <bit>

#include "core/spec.h"
#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"

namespace plumb::cuda {

/// Memory as (outer, channels, inner).
struct ChannelView {
  int64_t outer = 1, channels, inner = 1;

  explicit ChannelView(const TensorSpec& x) : channels(x.shape[1]) {
    const DimOrder order = memory_order(x.layout, x.rank());
    bool is_inside = false;
    for (int i = 0; i < x.rank(); ++i) {
      if (order[i] == 1) {
        is_inside = true;
      } else {
        (is_inside ? inner : outer) *= x.shape[order[i]];
      }
    }
  }
  int64_t numel() const { return outer * channels * inner; }
};

template <class Sums>
struct ChannelSumsArgs {
  Sums sums;
  typename Sums::State* parts;  // (cut, channel), if channels are cut into parts
  int64_t outer, channels, inner;
  int cuts;
  unsigned width, slots;  // of columns: pieces side by side, and rows at a time, of a block
  Divisor pieces;         // of runs: in one of them
};

constexpr int kChunk = 128;  // elements that are added up without double

/// An offset of which the compiler forgets how it came about. It would take the offsets of several pieces apart into
/// what they share and the rest, and then not see that four elements to be stored are neighbours.
__device__ inline int64_t opaque(int64_t at) {
#ifdef __CUDACC__
  asm("" : "+l"(at));
#endif
  return at;
}

/// What sums have of a piece that was fetched. Some write what they keep of it, when all that is under way has been
/// fetched: the compiler moves no load before a store, and each would wait for the one before.
template <class Sums, class Fetched>
__device__ auto of_fetched(const Sums& sums, const Fetched& v) {
  if constexpr (requires { sums.kept(v); }) {
    return sums.kept(v);
  } else {
    return v;
  }
}

/// add(what was fetched) of as many of the next pieces as there are, but no more than kMost; how many. Several are
/// under way from memory at a time: with one, a thread would wait most of the time.
template <int kEach, int kMost, class Sums, class Pieces, class Add>
__device__ int add_pieces(const Sums& sums, Pieces& pieces, const Add& add) {
  using Fetched = decltype(sums.template fetch<kEach>(0));
  constexpr size_t kBytes = requires(Fetched f) { sums.kept(f); }
  ? 96 : 64;  // those know where they write, too
  constexpr int kUnderWay = static_cast<int>(std::bit_floor(std::clamp<size_t>(kBytes / sizeof(Fetched), 2, 8)));
  static_assert(kMost % kUnderWay == 0);
  int n = 0;
#pragma unroll 1
  for (; n < kMost && pieces.has(kUnderWay); n += kUnderWay) {
    Fetched v[kUnderWay];
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) v[u] = sums.template fetch<kEach>(pieces.next());
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) add(of_fetched(sums, v[u]));
  }
  if (n == kMost || !pieces.has(1)) return n;
  Fetched last[kUnderWay - 1]{};
  int rest = 0;
#pragma unroll
  for (int u = 0; u < kUnderWay - 1; ++u) {
    if (!pieces.has(1)) continue;
    last[u] = sums.template fetch<kEach>(pieces.next());
    ++rest;
  }
#pragma unroll
  for (int u = 0; u < kUnderWay - 1; ++u) {
    if (u < rest) add(of_fetched(sums, last[u]));
  }
  return n + rest;
}

/// The pieces of a channel from `first` on, `step` apart, where a channel is `outer` runs of neighbours. Where the next
/// lies follows from where the last did, by additions.
template <int kEach>
struct PiecesOfRuns {
  int64_t at, left, step;  // `left`: pieces up to the channel's last, with those of other threads
  int64_t piece, of_run, by_pieces, by_elements, over_others;

  template <class Sums>
  __device__ PiecesOfRuns(const ChannelSumsArgs<Sums>& a, int64_t channel, int64_t first, int64_t stride)
      : left(a.outer * a.pieces.by - first), step(stride), of_run(a.pieces.by) {
    const int64_t by_runs = a.pieces.quotient(step), run = a.pieces.quotient(first), between = a.channels * a.inner;
    piece = first - run * of_run;
    by_pieces = step - by_runs * of_run;
    at = run * between + channel * a.inner + piece * kEach;
    by_elements = by_runs * between + by_pieces * kEach;
    over_others = between - a.inner;
  }
  __device__ bool has(int pieces) const { return left > (pieces - 1) * step; }
  /// Where this piece lies, and on to the next.
  __device__ int64_t next() {
    const int64_t here = at;
    left -= step;
    piece += by_pieces;
    at += by_elements;
    if (piece >= of_run) {
      piece -= of_run;
      at += over_others;
    }
    return here;
  }
};

/// The same of a column, from a row on.
struct PiecesOfColumn {
  int64_t at, left, step, by_elements;

  __device__ bool has(int pieces) const { return left > (pieces - 1) * step; }
  __device__ int64_t next() {
    const int64_t here = at;
    left -= step;
    at += by_elements;
    return here;
  }
};

}  // namespace plumb::cuda
