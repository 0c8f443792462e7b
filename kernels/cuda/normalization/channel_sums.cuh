// Sums over all elements of each channel, in an order that does not change: a thread adds some of them up in the type
// of the arithmetic, a chunk at a time, and all else is done in double. What is summed is plain bytes, with
//   Element, kEach-fold Operands, fetch<kEach>(at)  what is read at an offset
//   kept(what was fetched)                if it gives the operands, and may write
//   State                                 what many elements come to; State{} of none
//   Chunk begin(State, at, channel)       before some elements, of which the first is at offset `at`
//   void add(Chunk&, Operands, j)         element j of what was fetched
//   void end(State&, Chunk, n)            the n elements of the chunk
//   State merge(State, State), from_lane(State, distance), void finish(State, channel)
#pragma once

#include <algorithm>

#include "kernels/cuda/normalization/channel_pieces.cuh"
#include "kernels/cuda/reduction/rows.cuh"

namespace plumb::cuda {

template <class Sums>
__device__ void end_channel(const ChannelSumsArgs<Sums>& a, const typename Sums::State& s, int64_t channel) {
  if (a.cuts == 1) {
    a.sums.finish(s, channel);
  } else {
    put(a.parts + int64_t{blockIdx.y} * a.channels + channel, s);
  }
}

/// Of the pieces of a channel from `first` on, `step` apart.
template <int kEach, class Sums>
__device__ typename Sums::State sum_of_runs(const ChannelSumsArgs<Sums>& a, int64_t channel, int64_t first,
                                            int64_t step) {
  typename Sums::State s{};
  PiecesOfRuns<kEach> pieces(a, channel, first, step);
#pragma unroll 1
  while (pieces.has(1)) {
    auto chunk = a.sums.begin(s, pieces.at, channel);
    const int n = add_pieces<kEach, kChunk / kEach>(a.sums, pieces, [&](const auto& v) {
      for (int j = 0; j < kEach; ++j) a.sums.add(chunk, v, j);
    });
    a.sums.end(s, chunk, n * kEach);
  }
  return s;
}

/// Runs of a few elements: a warp a channel.
template <class Sums, int kEach>
__global__ void __launch_bounds__(kRowThreads, kFewBlocks) channel_sums_by_warps_kernel(const ChannelSumsArgs<Sums> a) {
#pragma unroll 1
  for (int64_t c = thread_of_grid() / kWarp; c < a.channels; c += threads_of_grid() / kWarp) {
    const auto s = merge_warp(a.sums, sum_of_runs<kEach>(a, c, threadIdx.x % kWarp, kWarp));
    if (threadIdx.x % kWarp == 0) a.sums.finish(s, c);
  }
}

template <class Sums>
struct BlockSumsShared {
  typename Sums::State of_warps[kRowWarps];
};
/// Of a channel by a block, or of a part of one. All threads know what finish has put when it returns.
template <int kEach, class Sums>
__device__ void sum_by_block(const ChannelSumsArgs<Sums>& a, int64_t c, BlockSumsShared<Sums>& shared_sums) {
  const int64_t first = int64_t{blockIdx.y} * kRowThreads + threadIdx.x, step = int64_t{kRowThreads} * a.cuts;
  auto s = merge_warp(a.sums, sum_of_runs<kEach>(a, c, first, step));
  if (threadIdx.x % kWarp == 0) shared_sums.of_warps[threadIdx.x / kWarp] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < kRowWarps; ++w) s = a.sums.merge(s, shared_sums.of_warps[w]);
    end_channel(a, s, c);
  }
  __syncthreads();
}
/// Runs of many.
template <class Sums, int kEach>
__global__ void __launch_bounds__(kRowThreads, kLeastBlocks)
    channel_sums_by_blocks_kernel(const ChannelSumsArgs<Sums> a) {
  auto& shared_sums = shared<BlockSumsShared<Sums>>();
#pragma unroll 1
  for (int64_t c = blockIdx.x; c < a.channels; c += gridDim.x) sum_by_block<kEach>(a, c, shared_sums);
}

/// Of kEach channels from `channel` on.
template <int kEach, class Sums>
__device__ void sum_of_column(const ChannelSumsArgs<Sums>& a, int64_t channel, PiecesOfColumn pieces,
                              typename Sums::State (&s)[kEach]) {
#pragma unroll 1
  while (pieces.has(1)) {
    typename Sums::Chunk chunks[kEach];
    for (int j = 0; j < kEach; ++j) chunks[j] = a.sums.begin(s[j], pieces.at + j, channel + j);
    const int n = add_pieces<kEach, kChunk>(a.sums, pieces, [&](const auto& v) {
      for (int j = 0; j < kEach; ++j) a.sums.add(chunks[j], v, j);
    });
    for (int j = 0; j < kEach; ++j) a.sums.end(s[j], chunks[j], n);
  }
}

template <class Sums, int kEach>
struct ColumnSumsShared {
  typename Sums::State of[kEach][kRowThreads];
};
/// Of channels side by side: a block has `width` pieces of them, and of those `slots` rows at a time. What the sums
/// come to takes long in double: a thread does it for one channel. All know what it has put when this returns.
template <int kEach, class Sums>
__device__ void sum_by_columns(const ChannelSumsArgs<Sums>& a, int64_t group,
                               ColumnSumsShared<Sums, kEach>& shared_sums) {
  using State = typename Sums::State;
  const unsigned column = threadIdx.x % a.width, slot = threadIdx.x / a.width;
  const int64_t first = group * a.width * kEach, channel = first + column * kEach;
  State s[kEach] = {};
  if (slot < a.slots && channel < a.channels) {
    const int64_t row = int64_t{blockIdx.y} * a.slots + slot, step = int64_t{a.slots} * a.cuts;
    sum_of_column(a, channel, {row * a.channels + channel, a.outer - row, step, step * a.channels}, s);
  }
  for (int j = 0; j < kEach; ++j) shared_sums.of[j][threadIdx.x] = s[j];
  __syncthreads();
  for (unsigned live = a.slots; live > 1;) {
    const unsigned half = (live + 1) / 2;
    if (slot + half < live) {
      for (int j = 0; j < kEach; ++j) {
        State& own = shared_sums.of[j][threadIdx.x];
        own = a.sums.merge(own, shared_sums.of[j][threadIdx.x + half * a.width]);
      }
    }
    live = half;
    __syncthreads();
  }
  if (const unsigned i = threadIdx.x; i < a.width * kEach && first + i < a.channels)
    end_channel(a, shared_sums.of[i % kEach][i / kEach], first + i);
  __syncthreads();
}
/// How many of its blocks a multiprocessor has registers for.
template <class Sums>
constexpr unsigned kBlocksOfColumns = sizeof(typename Sums::Chunk) > 4 * sizeof(Compute<typename Sums::Element>)
                                          ? 2
                                          : kFewBlocks;
template <class Sums, int kEach>
__global__ void __launch_bounds__(kRowThreads, kBlocksOfColumns<Sums>)
    channel_sums_by_columns_kernel(const ChannelSumsArgs<Sums> a) {
  auto& shared_sums = shared<ColumnSumsShared<Sums, kEach>>();
  const int64_t groups = (a.channels / kEach + a.width - 1) / a.width;
#pragma unroll 1
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) sum_by_columns<kEach>(a, group, shared_sums);
}

/// The parts of each channel: a warp each, of which a thread has several on their way at a time.
template <class Sums>
__global__ void __launch_bounds__(kRowThreads) channel_sums_parts_kernel(const ChannelSumsArgs<Sums> a) {
#pragma unroll 1
  for (int64_t c = thread_of_grid() / kWarp; c < a.channels; c += threads_of_grid() / kWarp) {
    typename Sums::State s{};
    constexpr int kAtOnce = std::max(1, static_cast<int>(std::bit_floor(64 / sizeof(typename Sums::State))));
    constexpr int kLanes = static_cast<int>(kWarp);
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x % kWarp); first < a.cuts; first += kAtOnce * kLanes) {
      typename Sums::State some[kAtOnce]{};
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int part = first + u * kLanes;
        if (part < a.cuts) some[u] = get(a.parts + int64_t{part} * a.channels + c);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) s = a.sums.merge(s, some[u]);
    }
    s = merge_warp(a.sums, s);
    if (threadIdx.x % kWarp == 0) a.sums.finish(s, c);
  }
}

/// How many pieces side by side leave a group for each multiprocessor: a warp's at most, and `least` bytes at least,
/// which memory gives at once. 0 if none do.
inline int64_t narrow_columns(int64_t pieces, int64_t bytes, int64_t multiprocessors, int64_t least) {
  for (int64_t width = kWarp; width > 0 && width * bytes >= least; width /= 2) {
    if ((pieces + width - 1) / width >= multiprocessors) return width;
  }
  return 0;
}

/// How the sums of a view are made on a device; decided when the kernel is prepared.
template <class Sums>
class ChannelSumsPlan {
 public:
  ChannelSumsPlan(const Runtime& r, const ChannelView& v) : view_(v) {
    const bool has_columns = v.inner == 1;
    const int64_t per_channel = v.outer * v.inner;
    const int64_t wanted =
        int64_t{has_columns ? kBlocksOfColumns<Sums> : kLeastBlocks} * r.properties().multiprocessors;
    const int64_t neighbours = has_columns ? v.channels : v.inner;
    each_ = !has_columns && neighbours % kMostEach == 0 ? kMostEach : neighbours % kFew == 0 ? kFew : 1;
    const int64_t side_by_side = v.channels / each_;
    // Of few rows the second launch, which cuts take, would be much of the time: narrow groups are enough without.
    constexpr int64_t kFewRows = 1024, kLeastBytes = 64;
    const int64_t bytes = each_ * int64_t{sizeof(Element)};
    const int64_t narrow = narrow_columns(side_by_side, bytes, r.properties().multiprocessors, kLeastBytes);
    const int64_t of_columns = std::max<int64_t>(1, (side_by_side + kWarp - 1) / kWarp);
    const int64_t even = std::max<int64_t>(1, (side_by_side + of_columns - 1) / of_columns);
    width_ = static_cast<unsigned>(has_columns && v.outer <= kFewRows && narrow > 0 ? narrow : even);
    slots_ = kRowThreads / width_;
    way_ = has_columns ? Way::kColumns : per_channel < kLeastOfBlock ? Way::kWarps : Way::kBlocks;
    const int64_t groups = has_columns           ? (side_by_side + width_ - 1) / width_
                           : way_ == Way::kWarps ? (v.channels + kRowWarps - 1) / kRowWarps
                                                 : v.channels;
    grid_ = grid_of(r, groups, kRowThreads);
    if (way_ == Way::kWarps || groups == 0) return;
    // Few channels of many elements would leave most of the device idle.
    constexpr int64_t kLeastTurns = 4, kMostCuts = 256;  // of 8 and 528 an H200 takes up to 27 and 3 % longer
    const int64_t turns = has_columns ? v.outer / slots_ : per_channel / each_ / kRowThreads;
    cuts_ = static_cast<int>(std::clamp<int64_t>(std::min(wanted / groups, turns / kLeastTurns), 1, kMostCuts));
    grid_.blocks.y = static_cast<unsigned>(cuts_);
  }
  int launches() const { return cuts_ > 1 ? 2 : 1; }
  size_t workspace_bytes() const {
    return cuts_ == 1 ? 0
                      : static_cast<size_t>(view_.channels) * static_cast<size_t>(cuts_) * sizeof(typename Sums::State);
  }
  void launch(const Queue& q, const Sums& sums, void* workspace) const {
    const ChannelSumsArgs<Sums> args{sums,
                                     static_cast<typename Sums::State*>(workspace),
                                     view_.inner ? view_.outer : 0,
                                     view_.channels,
                                     view_.inner,
                                     cuts_,
                                     width_,
                                     slots_,
                                     Divisor(std::max<int64_t>(1, view_.inner / each_))};
    each_ == 1 ? launch<1>(q, args) : each_ == kFew ? launch<kFew>(q, args) : launch<kMostEach>(q, args);
    if (cuts_ > 1) q.launch<channel_sums_parts_kernel<Sums>>(grid_over(q.runtime(), view_.channels * kWarp), args);
  }

 private:
  using Element = typename Sums::Element;
  enum class Way { kWarps, kBlocks, kColumns };
  // Of channels side by side more would take too many registers.
  static constexpr int kMostEach = Vector<Element>::kSize, kFew = kFewEach<Element>;

  template <int kEach>
  void launch(const Queue& q, const ChannelSumsArgs<Sums>& args) const {
    switch (way_) {
      case Way::kWarps: return q.launch<channel_sums_by_warps_kernel<Sums, kEach>>(grid_, args);
      case Way::kBlocks: return q.launch<channel_sums_by_blocks_kernel<Sums, kEach>>(grid_, args);
      case Way::kColumns:
        if constexpr (kEach <= kFew) q.launch<channel_sums_by_columns_kernel<Sums, kEach>>(grid_, args);
    }
  }

  ChannelView view_;
  Way way_;
  int each_, cuts_ = 1;
  unsigned width_, slots_;
  Grid grid_;
};

}  // namespace plumb::cuda
