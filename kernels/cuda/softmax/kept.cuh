// Lines whose elements are neighbours, kept in registers by the threads that share them: memory is read once.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduction/rows.cuh"

namespace plumb::cuda::kept {

/// 2^log neighbouring lanes of a warp. All lanes of the warp must take part.
struct ByLanesOfWarp {
  unsigned log;
  __device__ unsigned step() const { return 1u << log; }
  __device__ unsigned first() const { return threadIdx.x & (step() - 1); }
  template <class C, class Combine>
  __device__ C all(C v, const Combine& combine) const {
    for (unsigned distance = step() / 2; distance > 0; distance /= 2)
      v = combine(v, __shfl_xor_sync(kAllLanes, v, distance));
    return v;
  }
};
/// A block.
template <class C>
struct ByWholeBlock {
  RowShared<C>& shared;
  __device__ static unsigned first() { return threadIdx.x; }
  __device__ static unsigned step() { return kRowThreads; }
  template <class Combine>
  __device__ C all(C v, const Combine& combine) const {
    return block_combine(v, shared.of[0], combine);
  }
};

/// The larger, and the other if one is NaN: who takes e^(x - largest) of every x gets NaN all the same.
struct Larger {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return std::fmax(a, b);
  }
};

/// The bytes of a piece, which are nothing before they are read: pieces begin as zeros, half a register at a time.
template <class T, int kEach>
struct alignas(Piece<T, kEach>) RawPiece {
  using Word = std::conditional_t<(sizeof(T) < 4 && kEach == 1), uint16_t, uint32_t>;
  Word words[sizeof(Piece<T, kEach>) / sizeof(Word)];

  __device__ Piece<T, kEach> elements() const { return std::bit_cast<Piece<T, kEach>>(*this); }
};
template <int kEach, class T>
__device__ RawPiece<T, kEach> load_raw(const T* p) {
  return get(reinterpret_cast<const RawPiece<T, kEach>*>(p));
}

/// e^x for x up to 0, as T needs it.
template <class T>
__device__ Compute<T> power_below(Compute<T> x) {
  if constexpr (sizeof(T) < sizeof(Compute<T>)) {
    return functors::math::exp_narrow(x);
  } else {
    return functors::math::exp_below(x);
  }
}

/// A thread's share of a line: pieces `first`, first + step, ... of those there are.
template <class T, int kEach, int kPieces>
struct Share {
  RawPiece<T, kEach> of[kPieces];

  /// body(piece, i) for every piece that is there; i is the offset of its first element.
  template <class Who, class Body>
  __device__ static void each(const Who& who, int terms, const Body& body) {
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
      const int i = static_cast<int>(who.first() + static_cast<unsigned>(k) * who.step()) * kEach;
      if (i < terms) body(k, i);
    }
  }
  template <class Who>
  __device__ void load(const Who& who, const T* line, int terms) {
    each(who, terms, [&](int k, int i) { of[k] = load_raw<kEach>(line + i); });
  }
};

/// The largest element of a line, and the sum of e^(element - largest). v becomes e^(element - largest), or what that
/// is the power of.
template <class C>
struct Exponentials {
  C largest, sum;
};
template <class T, int kEach, int kPieces, class Who>
__device__ Exponentials<Compute<T>> exponentials(const Who& who, const Share<T, kEach, kPieces>& x, int terms,
                                                 Compute<T> (&v)[kPieces][kEach], bool wants_powers) {
  using C = Compute<T>;
  C largest = -std::numeric_limits<C>::infinity(), sum = 0;
  x.each(who, terms, [&](int k, int) {
    const auto elements = x.of[k].elements();
    for (int j = 0; j < kEach; ++j) largest = Larger()(largest, v[k][j] = wide(elements.of[j]));
  });
  largest = who.all(largest, Larger());
  x.each(who, terms, [&](int k, int) {
    for (int j = 0; j < kEach; ++j) {
      const C below = v[k][j] - largest, power = power_below<T>(below);
      sum += power;
      v[k][j] = wants_powers ? power : below;
    }
  });
  return {largest, who.all(sum, Sum())};
}
/// The same without v: it costs registers, and so blocks that a multiprocessor could hold.
template <class T, int kEach, int kPieces, class Who>
__device__ Exponentials<Compute<T>> exponentials(const Who& who, const Share<T, kEach, kPieces>& x, int terms) {
  using C = Compute<T>;
  C largest = -std::numeric_limits<C>::infinity(), sum = 0;
  x.each(who, terms, [&](int k, int) {
    const auto elements = x.of[k].elements();
    for (int j = 0; j < kEach; ++j) largest = Larger()(largest, wide(elements.of[j]));
  });
  largest = who.all(largest, Larger());
  x.each(who, terms, [&](int k, int) {
    const auto elements = x.of[k].elements();
    for (int j = 0; j < kEach; ++j) sum += power_below<T>(wide(elements.of[j]) - largest);
  });
  return {largest, who.all(sum, Sum())};
}

/// A kernel and its grid, chosen when they are prepared.
template <class Args>
struct Way {
  Grid grid;
  void (*kernel)(const Queue&, const Grid&, const Args&);

  void launch(const Queue& q, const Args& a) const { kernel(q, grid, a); }
};
template <auto kFunction, class Args>
void launch_on(const Queue& q, const Grid& grid, const Args& a) {
  q.launch<kFunction>(grid, a);
}

/// Who shares the lines of some length, if registers hold them: so many pieces a thread at most, few or many.
template <class T, int kEach>
struct Plan {
  static constexpr int kValues = 64 / sizeof(Compute<T>);  // of a thread, where they are few
  static constexpr int kFew = kEach == 1 ? 4 : kValues / kEach, kMany = kEach == 1 ? kValues : 2 * kValues / kEach;
  unsigned log = 0;  // of the lanes that share a line
  bool is_by_lanes = false, has_few = true, is_kept = true;

  explicit Plan(int64_t terms) {
    const int64_t pieces = (terms + kEach - 1) / kEach;
    is_by_lanes = pieces <= int64_t{kMany} * kWarp;
    if (!is_by_lanes) {
      has_few = pieces <= int64_t{kFew} * kRowThreads;
      is_kept = pieces <= int64_t{kMany} * kRowThreads;
      return;
    }
    // Four lanes at least where there are as many pieces: together they have 64 bytes that are neighbours.
    const auto lanes = [&] { return int64_t{1} << log; };
    while (lanes() < kWarp && (lanes() * kFew < pieces || (lanes() < 4 && lanes() < pieces))) ++log;
    has_few = pieces <= lanes() * kFew;
  }
  /// Of the ways to go over lines: by lanes of a warp or by whole blocks, with few pieces a thread or with many, and
  /// without keeping them.
  template <class Args, auto kFewOfLanes, auto kManyOfLanes, auto kFewOfBlock, auto kManyOfBlock, auto kLong>
  Way<Args> way(const Runtime& r, int64_t lines) const {
    const auto of_lanes = has_few ? launch_on<kFewOfLanes, Args> : launch_on<kManyOfLanes, Args>;
    const auto of_block = has_few ? launch_on<kFewOfBlock, Args> : launch_on<kManyOfBlock, Args>;
    return {grid(r, lines), !is_kept ? launch_on<kLong, Args> : is_by_lanes ? of_lanes : of_block};
  }

 private:
  /// Of so many lines.
  Grid grid(const Runtime& r, int64_t lines) const {
    const int64_t of_block = is_by_lanes ? int64_t{kRowThreads} >> log : 1;
    return grid_of(r, (lines + of_block - 1) / of_block, kRowThreads);
  }
};

/// body(who, number of a line, whether it is there) for the lines of this thread. All lanes of a warp go round equally
/// often, for they wait for each other.
template <class Body>
__device__ void for_lines_of_lanes(int64_t lines, unsigned log, const Body& body) {
  const unsigned lane = threadIdx.x % kWarp;
#pragma unroll 1
  for (int64_t i = thread_of_grid() - lane; i >> log < lines; i += threads_of_grid()) {
    const int64_t line = (i + lane) >> log;
    body(ByLanesOfWarp{log}, line, line < lines);
  }
}

}  // namespace plumb::cuda::kept
