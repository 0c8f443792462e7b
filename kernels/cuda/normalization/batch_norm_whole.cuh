// Batch normalisation in one launch: a block has all elements of its channels, so that it waits for no other between
// the sums and the pass that needs them, which finds in the caches of the multiprocessor what was read last. It wants
// channels for all multiprocessors; where there are, two launches less are most of what small tensors take.
#pragma once

#include "kernels/cuda/normalization/batch_norm_map.cuh"

namespace plumb::cuda::norm {

template <class Sums>
struct WholeArgs {
  ChannelSumsArgs<Sums> sums;
  MapArgs<typename Sums::Element> map;
};

/// Channels of some neighbours: a block each.
template <class Sums, Map kMap, int kEach>
__global__ void __launch_bounds__(kRowThreads, kLeastBlocks) batch_norm_whole_runs_kernel(const WholeArgs<Sums> a) {
  auto& shared_sums = shared<BlockSumsShared<Sums>>();
#pragma unroll 1
  for (int64_t c = blockIdx.x; c < a.sums.channels; c += gridDim.x) {
    sum_by_block<kEach>(a.sums, c, shared_sums);
    const auto of_channel = of_channels<kMap, 1>(a.map, c).of[0];
    map_pieces<kMap, kEach>(a.map, PiecesOfRuns<kEach>(a.sums, c, threadIdx.x, kRowThreads),
                            [&](int) { return of_channel; });
  }
}

/// Channels side by side: a block has some, which it goes over from the last row to the first when it has their sums.
template <class Sums, Map kMap, int kEach>
__global__ void __launch_bounds__(kRowThreads, 2) batch_norm_whole_columns_kernel(const WholeArgs<Sums> a) {
  auto& shared_sums = shared<ColumnSumsShared<Sums, kEach>>();
  const unsigned column = threadIdx.x % a.sums.width, slot = threadIdx.x / a.sums.width;
  const int64_t channels = a.sums.channels, groups = (channels / kEach + a.sums.width - 1) / a.sums.width;
#pragma unroll 1
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    sum_by_columns<kEach>(a.sums, group, shared_sums);
    const int64_t c = (group * a.sums.width + column) * kEach, rows = a.sums.outer - slot;
    if (c >= channels) continue;
    const auto of_each = of_channels<kMap, kEach>(a.map, c);
    const PiecesOfColumn pieces{(rows - 1) * channels + c, rows, a.sums.slots, -int64_t{a.sums.slots} * channels};
    map_pieces<kMap, kEach>(a.map, pieces, [&](int j) { return of_each.of[j]; });
  }
}

/// Which channels a block has.
class WholePlan {
 public:
  template <class T>
  static WholePlan of(const Runtime& r, const ChannelView& v) {
    constexpr int kMostEach = Vector<T>::kSize, kFew = kFewEach<T>;
    WholePlan plan(v);
    plan.has_columns_ = v.inner == 1;
    const int64_t neighbours = plan.has_columns_ ? v.channels : v.inner;
    plan.each_ = !plan.has_columns_ && neighbours % kMostEach == 0 ? kMostEach : neighbours % kFew == 0 ? kFew : 1;
    int64_t groups = v.channels;
    if (plan.has_columns_) {
      constexpr int64_t kLeastBytes = 32;
      const int64_t pieces = v.channels / plan.each_, bytes = plan.each_ * int64_t{sizeof(T)};
      const int64_t narrow = narrow_columns(pieces, bytes, r.properties().multiprocessors, kLeastBytes);
      const int64_t width = narrow > 0 ? narrow : kLeastBytes / bytes;
      plan.width_ = static_cast<unsigned>(width);
      groups = (pieces + width - 1) / width;
    }
    plan.grid_ = grid_of(r, groups, kRowThreads);
    plan.has_enough_ = v.numel() > 0 && groups * kLeastShare >= r.properties().multiprocessors;
    return plan;
  }
  /// Whether so much of the device has work that it is worth measuring. Not in f64, which is for checking and would
  /// take too many registers.
  template <class T>
  static bool is_for(Device device, const TensorSpec& x) {
    return !std::is_same_v<T, double> && of<T>(runtime_of(device), ChannelView(x)).has_enough_;
  }

  template <Map kMap, class T, class Sums>
  void launch(const Queue& q, const Sums& sums, const MapArgs<T>& map) const {
    const WholeArgs<Sums> a{{sums, nullptr, view_.outer, view_.channels, view_.inner, 1, width_, kRowThreads / width_,
                             Divisor(view_.inner / (has_columns_ ? 1 : each_))},
                            map};
    constexpr int kMostEach = Vector<T>::kSize;
    if (each_ == 1) return launch<kMap, 1>(q, a);
    if constexpr (kMostEach > 4) {
      if (each_ == kMostEach) return q.launch<batch_norm_whole_runs_kernel<Sums, kMap, kMostEach>>(grid_, a);
    }
    launch<kMap, 4>(q, a);
  }

 private:
  static constexpr int64_t kLeastShare = 4;

  explicit WholePlan(const ChannelView& v) : view_(v) {}
  template <Map kMap, int kEach, class Sums>
  void launch(const Queue& q, const WholeArgs<Sums>& a) const {
    has_columns_ ? q.launch<batch_norm_whole_columns_kernel<Sums, kMap, kEach>>(grid_, a)
                 : q.launch<batch_norm_whole_runs_kernel<Sums, kMap, kEach>>(grid_, a);
  }

  ChannelView view_;
  bool has_columns_ = false, has_enough_ = false;
  int each_ = 1;
  unsigned width_ = 1;
  Grid grid_;
};

}  // namespace plumb::cuda::norm
