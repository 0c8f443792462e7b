// Lines of a tensor folded to one state each, in an order that does not change. A fold is plain bytes, with
//   Element, const Element* x             the tensor
//   State                                 what terms come to
//   Own begin(int64_t y)                  what a thread keeps of a line, before its first term; y: offset in the result
//   void add(Own&, Piece, k, OwnTerms)    terms k, k + 1, ... of those that the thread has
//   State end(Own, OwnTerms, bool)        which those were, and whether there were any
//   State merge(State, State)             of two parts of a line
//   State from_lane(State, int distance)  the state of another lane of the warp
//   void finish(State, int64_t y)
//   kIsAcross, kBlocks                    whether lines may lie across memory, and how many blocks will do
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduction/fold_terms.cuh"

namespace plumb::cuda {

constexpr unsigned kFoldThreads = 256, kFoldWarps = kFoldThreads / kWarp;

template <class Fold>
struct FoldArgs {
  Fold fold;
  Steps lines;
  Terms terms;
  typename Fold::State* parts;  // (line, part), if lines are cut into parts
  int cuts;
  unsigned width, slots;  // threads of a warp that share a line; of a block, pieces side by side and terms at a time
};

/// All of a piece by halves, and those by halves: a chain would take longer, and round more often.
template <int kEach, class C, class Combine>
__device__ C by_halves(C (&of)[kEach], const Combine& combine) {
  for (int half = kEach / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) of[j] = combine(of[j], of[j + half]);
  }
  return of[0];
}

template <class Fold>
__device__ void end_line(const FoldArgs<Fold>& a, const typename Fold::State& s, int64_t line, int64_t y) {
  if (a.cuts == 1) {
    a.fold.finish(s, y);
  } else {
    put(a.parts + line * a.cuts + blockIdx.y, s);
  }
}

/// A thread's terms of a line.
template <int kEach, class Fold>
__device__ typename Fold::State fold_terms(const FoldArgs<Fold>& a, int64_t x, int64_t y, const OwnPieces& pieces) {
  using Element = typename Fold::Element;
  const Terms& t = a.terms;
  auto own = a.fold.begin(y);
  const OwnTerms<kEach> terms{pieces.first, t.sharers.by};
  for_own_pieces<kEach>(t, a.fold.x + x, pieces, [&](const Piece<Element, kEach>& v, unsigned turn) {
    a.fold.add(own, v, turn * kEach, terms);
  });
  auto s = a.fold.end(own, terms, pieces.turns > 0);
  if constexpr (kEach > 1) {
#pragma unroll 1
    for (int64_t i = pieces.first; i < t.rest; i += t.sharers.by) {
      auto last = a.fold.begin(y);
      const OwnTerms<1> term{t.pieces * kEach + i, 0};
      a.fold.add(last, load_piece<1>(a.fold.x + x + term.first), 0, term);
      s = a.fold.merge(s, a.fold.end(last, term, true));
    }
  }
  return s;
}

/// The states of `width` neighbouring lanes as one, in all of them: as merge_warp.
template <class Fold>
__device__ typename Fold::State merge_lanes(const Fold& fold, typename Fold::State s, unsigned width) {
#pragma unroll 1
  for (unsigned distance = 1; distance < width; distance *= 2) {
    const auto other = fold.from_lane(s, static_cast<int>(distance));
    s = (threadIdx.x & distance) == 0 ? fold.merge(s, other) : fold.merge(other, s);
  }
  return s;
}

/// `width` lanes of a warp a line.
template <class Fold, int kEach>
__global__ void __launch_bounds__(kFoldThreads, Fold::kBlocks) fold_by_warps_kernel(const FoldArgs<Fold> a) {
  const unsigned lane = threadIdx.x % kWarp, of_warp = kWarp / a.width, own = lane / a.width, number = lane % a.width;
  const int64_t step = threads_of_grid() / kWarp * of_warp;
  const OwnPieces pieces = a.terms.own(number);
#pragma unroll 1
  for (int64_t first = thread_of_grid() / kWarp * of_warp; first < a.lines.count; first += step) {
    const int64_t line = first + own;
    const bool is_there = line < a.lines.count;
    int64_t x = 0, y = 0;
    typename Fold::State s{};
    if (is_there) {
      a.lines.move(line, x, y);
      s = fold_terms<kEach>(a, x, y, pieces);
    }
    s = merge_lanes(a.fold, s, a.width);
    if (number == 0 && is_there) a.fold.finish(s, y);
  }
}

template <class Fold>
struct FoldShared {
  typename Fold::State of_warps[kFoldWarps];
};

/// The states of a block's threads as one, in thread 0.
template <class Fold>
__device__ typename Fold::State merge_block(const Fold& fold, typename Fold::State s, FoldShared<Fold>& of) {
  s = merge_warp(fold, s);
  if (threadIdx.x % kWarp == 0) of.of_warps[threadIdx.x / kWarp] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < kFoldWarps; ++w) s = fold.merge(s, of.of_warps[w]);
  }
  __syncthreads();
  return s;
}

/// A block a line, or a part of one.
template <class Fold, int kEach>
__global__ void __launch_bounds__(kFoldThreads, Fold::kBlocks) fold_by_blocks_kernel(const FoldArgs<Fold> a) {
  auto& of_warps = shared<FoldShared<Fold>>();
  const OwnPieces pieces = a.terms.own(int64_t{blockIdx.y} * kFoldThreads + threadIdx.x);
#pragma unroll 1
  for (int64_t line = blockIdx.x; line < a.lines.count; line += gridDim.x) {
    int64_t x = 0, y = 0;
    a.lines.move(line, x, y);
    const auto s = merge_block(a.fold, fold_terms<kEach>(a, x, y, pieces), of_warps);
    if (threadIdx.x == 0) end_line(a, s, line, y);
  }
}

template <class Fold, int kEach>
struct FoldAcrossShared {
  typename Fold::State of[kEach][kFoldThreads];
};

/// The states of a block's slots as those of slot 0.
template <class Fold, int kEach>
__device__ void merge_slots(const FoldArgs<Fold>& a, unsigned slot, FoldAcrossShared<Fold, kEach>& s) {
  for (unsigned live = a.slots; live > 1;) {
    const unsigned half = (live + 1) / 2;
    if (slot + half < live) {
      for (int j = 0; j < kEach; ++j) {
        auto& own = s.of[j][threadIdx.x];
        own = a.fold.merge(own, s.of[j][threadIdx.x + half * a.width]);
      }
    }
    live = half;
    __syncthreads();
  }
}

/// Lines side by side, a thread kEach of them: a block has `width` such pieces, and `slots` of their terms, or of a
/// part of those, at a time.
template <class Fold, int kEach>
__global__ void __launch_bounds__(kFoldThreads, Fold::kBlocks) fold_across_kernel(const FoldArgs<Fold> a) {
  auto& s = shared<FoldAcrossShared<Fold, kEach>>();
  const unsigned column = threadIdx.x % a.width, slot = threadIdx.x / a.width;
  const int64_t of_block = int64_t{a.width} * kEach;
  const OwnPieces pieces = a.terms.own(int64_t{blockIdx.y} * a.slots + slot);
  const OwnTerms<1> terms{pieces.first, a.terms.sharers.by};
#pragma unroll 1
  for (int64_t from = blockIdx.x * of_block; from < a.lines.count; from += gridDim.x * of_block) {
    const int64_t line = from + column * kEach;
    const bool is_there = slot < a.slots && line < a.lines.count;
    int64_t x = 0, y = 0;
    if (is_there) {
      a.lines.move(line, x, y);
      typename Fold::Own own[kEach];
      for (int j = 0; j < kEach; ++j) own[j] = a.fold.begin(y + j * a.lines.y[0]);
      for_own_pieces<kEach>(a.terms, a.fold.x + x, pieces, [&](const auto& v, unsigned turn) {
        for (int j = 0; j < kEach; ++j) a.fold.add(own[j], Piece<typename Fold::Element, 1>{{v.of[j]}}, turn, terms);
      });
      for (int j = 0; j < kEach; ++j) s.of[j][threadIdx.x] = a.fold.end(own[j], terms, pieces.turns > 0);
    }
    __syncthreads();
    merge_slots(a, slot, s);
    // What a thread reads here is its own, so that the next lines need no barrier before they write.
    if (slot != 0 || !is_there) continue;
    for (int j = 0; j < kEach; ++j) end_line(a, s.of[j][threadIdx.x], line + j, y + j * a.lines.y[0]);
  }
}

/// Parts of a line from `first` on, `step` apart, of which there are some.
template <class Fold>
__device__ typename Fold::State fold_own_parts(const FoldArgs<Fold>& a, int64_t line, int64_t y, int first, int step) {
  const OwnTerms<1> none{0, 0};
  auto s = a.fold.end(a.fold.begin(y), none, false);
#pragma unroll 4
  for (int part = first; part < a.cuts; part += step) s = a.fold.merge(s, get(a.parts + line * a.cuts + part));
  return s;
}

/// The parts of each line: a warp a line, where lines are many.
template <class Fold>
__global__ void __launch_bounds__(kFoldThreads, kLeastBlocks) fold_parts_by_warps_kernel(const FoldArgs<Fold> a) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll 1
  for (int64_t line = thread_of_grid() / kWarp; line < a.lines.count; line += threads_of_grid() / kWarp) {
    int64_t x = 0, y = 0;
    a.lines.move(line, x, y);
    const auto s = merge_warp(a.fold, fold_own_parts(a, line, y, lane, kWarp));
    if (lane == 0) a.fold.finish(s, y);
  }
}

/// A block a line, where lines are few.
template <class Fold>
__global__ void __launch_bounds__(kFoldThreads, kLeastBlocks) fold_parts_by_blocks_kernel(const FoldArgs<Fold> a) {
  auto& of_warps = shared<FoldShared<Fold>>();
#pragma unroll 1
  for (int64_t line = blockIdx.x; line < a.lines.count; line += gridDim.x) {
    int64_t x = 0, y = 0;
    a.lines.move(line, x, y);
    const auto own = fold_own_parts(a, line, y, static_cast<int>(threadIdx.x), kFoldThreads);
    const auto s = merge_block(a.fold, own, of_warps);
    if (threadIdx.x == 0) a.fold.finish(s, y);
  }
}

}  // namespace plumb::cuda
