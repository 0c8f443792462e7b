// The pass of batch normalisation over the elements, by four numbers a channel. It begins with the last: these are what
// the cache still holds of the pass that took the sums.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/normalization/batch_norm.cuh"

namespace plumb::cuda::norm {

/// What the coefficients follow from in use.
template <class C>
struct Running {
  const C *mean, *var, *gamma, *beta;
  C epsilon;
};
template <class C>
__device__ Coefficients<C> in_use(C mean, C var, C gamma, C beta, C epsilon) {
  return {mean, gamma / math::sqrt(var + epsilon), beta, 0};
}

// What there is: y of x, the same with something added, both by the running statistics, too; dx of dy and x, or of dy
// where y is linear in x, whose own numbers do not matter, NaN or not; both behind a ReLU, where x tells what is left
// of dy; and that alone.
enum class Map {
  kForward,
  kForwardAdd,
  kInference,
  kInferenceAdd,
  kBackward,
  kLinear,
  kBackwardRelu,
  kLinearRelu,
  kLeftByRelu
};
constexpr bool is_behind_relu(Map map) { return map >= Map::kBackwardRelu; }
constexpr bool is_inference(Map map) { return map == Map::kInference || map == Map::kInferenceAdd; }
constexpr bool adds(Map map) { return map == Map::kForwardAdd || map == Map::kInferenceAdd; }
constexpr bool reads_other(Map map) { return adds(map) || map >= Map::kBackward; }
/// The map that does the same by coefficients in memory.
constexpr Map by_coefficients(Map map) {
  return !is_inference(map) ? map : adds(map) ? Map::kForwardAdd : Map::kForward;
}

template <class T>
struct MapArgs {
  using C = Compute<T>;
  const T* x = nullptr;
  const T* other = nullptr;  // dy, or what is added
  T* out = nullptr;
  const Coefficients<C>* k = nullptr;
  const C* beta = nullptr;                        // behind a ReLU
  C floor = -std::numeric_limits<C>::infinity();  // of y: 0 of a ReLU
  Running<C> running{};
  // of the plan:
  int64_t n = 0;
  Divisor inner{}, channels{};    // elements of memory until the channel changes, and how many there are
  unsigned width = 1, slots = 1;  // of columns: pieces side by side, and rows at a time, of a block
};

/// What a pass has of a channel.
template <class C>
struct OfChannel {
  Coefficients<C> k;
  C beta;
};
/// Of the channels from c on.
template <Map kMap, int kEach, class T>
__device__ Piece<OfChannel<Compute<T>>, kEach> of_channels(const MapArgs<T>& a, int64_t c) {
  Piece<OfChannel<Compute<T>>, kEach> found{};
  if constexpr (is_inference(kMap)) {
    const auto& r = a.running;
    const auto mean = load_piece<kEach>(r.mean + c), var = load_piece<kEach>(r.var + c);
    const auto gamma = load_piece<kEach>(r.gamma + c), beta = load_piece<kEach>(r.beta + c);
    for (int j = 0; j < kEach; ++j) found.of[j].k = in_use(mean.of[j], var.of[j], gamma.of[j], beta.of[j], r.epsilon);
  } else {
    for (int j = 0; j < kEach; ++j) found.of[j].k = a.k[c + j];
  }
  if constexpr (is_behind_relu(kMap)) {
    const auto beta = load_piece<kEach>(a.beta + c);
    for (int j = 0; j < kEach; ++j) found.of[j].beta = beta.of[j];
  }
  return found;
}

template <Map kMap, class T>
__device__ T mapped(const MapArgs<T>& a, const OfChannel<Compute<T>>& c, const T& x, const T& other) {
  using C = Compute<T>;
  const Coefficients<C>& k = c.k;
  if constexpr (kMap == Map::kLinear) return rounded<T>(wide(other) * k.scale);
  const C deviation = wide(x) - k.centre;
  C dy = wide(other);
  if constexpr (is_behind_relu(kMap)) dy = behind_relu(dy, deviation, k.scale, c.beta);
  if constexpr (kMap == Map::kLeftByRelu) return rounded<T>(dy);
  if constexpr (kMap == Map::kLinearRelu) return rounded<T>(dy * k.scale);
  const C v = deviation * k.slope + k.shift;
  if constexpr (kMap == Map::kBackward || kMap == Map::kBackwardRelu) return rounded<T>(v + dy * k.scale);
  const C z = adds(kMap) ? v + wide(other) : v;
  return rounded<T>(z < a.floor ? a.floor : z);  // a NaN stays one
}

template <class T, int kEach>
struct MapOperands {
  Piece<T, kEach> x, other;
};
template <Map kMap, int kEach, class T>
__device__ MapOperands<T, kEach> map_operands(const MapArgs<T>& a, int64_t at) {
  MapOperands<T, kEach> v{};
  if constexpr (kMap != Map::kLinear) v.x = load_piece<kEach>(a.x + at);
  if constexpr (reads_other(kMap)) v.other = load_piece<kEach>(a.other + at);
  return v;
}

/// A thread's pieces: the element j of each by channel_of(j). Some are under way from memory before the first is
/// needed.
template <Map kMap, int kEach, class T, class Pieces, class ChannelOf>
__device__ void map_pieces(const MapArgs<T>& a, Pieces pieces, const ChannelOf& channel_of) {
  constexpr int kUnderWay = reads_other(kMap) && kMap != Map::kLinear ? 2 : 4;
  const auto put = [&](int64_t to, const MapOperands<T, kEach>& v) {
    Piece<T, kEach> out;
#pragma unroll
    for (int j = 0; j < kEach; ++j) out.of[j] = mapped<kMap>(a, channel_of(j), v.x.of[j], v.other.of[j]);
    store_piece(a.out + to, out);
  };
#pragma unroll 1
  while (pieces.has(kUnderWay)) {
    MapOperands<T, kEach> v[kUnderWay];
    Pieces to = pieces;
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) v[u] = map_operands<kMap, kEach>(a, pieces.next());
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) put(opaque(to.next()), v[u]);
  }
  if (!pieces.has(1)) return;
  MapOperands<T, kEach> last[kUnderWay - 1]{};
  Pieces to = pieces;
#pragma unroll
  for (int u = 0; u < kUnderWay - 1; ++u) {
    if (pieces.has(1)) last[u] = map_operands<kMap, kEach>(a, pieces.next());
  }
#pragma unroll
  for (int u = 0; u < kUnderWay - 1; ++u) {
    if (to.has(1)) put(opaque(to.next()), last[u]);
  }
}

/// Elements that lie anyhow. kOneChannel: no piece has elements of two channels.
template <class T, Map kMap, int kMost, bool kOneChannel>
__global__ void __launch_bounds__(kRowThreads) batch_norm_map_kernel(const MapArgs<T> a) {
  for_dense<kMost>(a.n, [&]<int kEach>(int64_t i) {
    const auto v = map_operands<kMap, kEach>(a, i);
    Piece<T, kEach> out;
    int64_t place = i, c = a.inner.divide(place);
    a.channels.divide(c);
    auto of_channel = of_channels<kMap, 1>(a, c).of[0];
    for (int j = 0; j < kEach; ++j) {
      out.of[j] = mapped<kMap>(a, of_channel, v.x.of[j], v.other.of[j]);
      if (kOneChannel || j + 1 == kEach || ++place < a.inner.by) continue;
      place = 0;
      if (++c == a.channels.by) c = 0;
      of_channel = of_channels<kMap, 1>(a, c).of[0];
    }
    store_piece(a.out + i, out);
  });
}

/// Long runs of a channel's elements: a warp each.
template <class T, Map kMap, int kEach>
__global__ void __launch_bounds__(kRowThreads, kLeastBlocks) batch_norm_runs_kernel(const MapArgs<T> a) {
  const int64_t lane = threadIdx.x % kWarp, runs = a.inner.quotient(a.n);
#pragma unroll 1
  for (int64_t run = runs - 1 - thread_of_grid() / kWarp; run >= 0; run -= threads_of_grid() / kWarp) {
    int64_t c = run;
    a.channels.divide(c);
    const auto of_channel = of_channels<kMap, 1>(a, c).of[0];
    const PiecesOfColumn pieces{run * a.inner.by + lane * kEach, a.inner.by / kEach - lane, kWarp, kWarp * kEach};
    map_pieces<kMap, kEach>(a, pieces, [&](int) { return of_channel; });
  }
}

/// Channels side by side: a thread keeps some of them, for which it goes from row to row.
template <class T, Map kMap>
__global__ void __launch_bounds__(kRowThreads, kFewBlocks) batch_norm_columns_kernel(const MapArgs<T> a) {
  constexpr int kEach = Vector<T>::kSize;
  const unsigned column = threadIdx.x % a.width, slot = threadIdx.x / a.width;
  if (slot >= a.slots) return;
  const int64_t step = int64_t{a.slots} * gridDim.y;
  const int64_t row = a.channels.quotient(a.n) - 1 - (int64_t{blockIdx.y} * a.slots + slot);
#pragma unroll 1
  for (int64_t c = (int64_t{blockIdx.x} * a.width + column) * kEach; c < a.channels.by;
       c += int64_t{gridDim.x} * a.width * kEach) {
    const auto channels = of_channels<kMap, kEach>(a, c);
    const PiecesOfColumn pieces{row * a.channels.by + c, row + 1, step, -step * a.channels.by};
    map_pieces<kMap, kEach>(a, pieces, [&](int j) { return channels.of[j]; });
  }
}

/// What a kernel needs of its workspace for the numbers of channels.
template <class T>
size_t coefficient_bytes(int64_t channels) {
  return plumb::detail::aligned(static_cast<size_t>(channels) * sizeof(Coefficients<Compute<T>>));
}

/// How a view is gone over on a device; decided when the kernel is prepared.
class MapPlan {
 public:
  template <class T>
  static MapPlan of(const Runtime& r, const ChannelView& v) {
    constexpr int kMost = Vector<T>::kSize, kFew = kFewEach<T>;
    MapPlan plan(v);
    if (v.inner == 1 && v.channels % kMost == 0 && v.numel() > 0) {
      plan.set_columns(r, v.channels / kMost);
      return plan;
    }
    plan.has_few_ = v.inner % kMost != 0 && v.inner % kFew == 0;
    const int each = plan.has_few_ ? kFew : kMost;
    if (v.inner % each == 0 && v.inner / each >= kLeastOfRun) {
      plan.way_ = Way::kRuns;
      plan.grid_ = grid_over(r, v.outer * v.channels * kWarp, kRowThreads);
    } else {
      plan.way_ = v.inner % each == 0 ? Way::kOneChannel : Way::kAny;
      plan.grid_ = grid_over(r, (v.numel() + each - 1) / each, kRowThreads);
    }
    return plan;
  }
  /// Whether the coefficients must be there even in use: a thread would have to compute those of several channels for a
  /// piece.
  bool needs_coefficients() const { return way_ == Way::kAny; }
  template <Map kMap, class T>
  void launch(const Queue& q, MapArgs<T> a) const {
    if (view_.numel() == 0) return;
    a.n = view_.numel(), a.inner = Divisor(view_.inner), a.channels = Divisor(view_.channels);
    a.width = width_, a.slots = slots_;
    if (way_ == Way::kColumns) return q.launch<batch_norm_columns_kernel<T, kMap>>(grid_, a);
    has_few_ ? launch_pieces<kMap, kFewEach<T>>(q, a) : launch_pieces<kMap, Vector<T>::kSize>(q, a);
  }

 private:
  enum class Way { kColumns, kRuns, kOneChannel, kAny };
  static constexpr int64_t kLeastOfRun = 2 * kWarp;  // pieces of a run that a warp has work for

  explicit MapPlan(const ChannelView& v) : view_(v) {}
  template <Map kMap, int kEach, class T>
  void launch_pieces(const Queue& q, const MapArgs<T>& a) const {
    if (way_ == Way::kRuns) return q.launch<batch_norm_runs_kernel<T, kMap, kEach>>(grid_, a);
    if (way_ == Way::kOneChannel) return q.launch<batch_norm_map_kernel<T, kMap, kEach, true>>(grid_, a);
    if constexpr (kEach == Vector<T>::kSize) {
      q.launch<batch_norm_map_kernel<T, by_coefficients(kMap), kEach, false>>(grid_, a);
    }
  }
  void set_columns(const Runtime& r, int64_t side_by_side) {
    constexpr int64_t kLeastRows = 4, kRounds = 2;
    way_ = Way::kColumns;
    const int64_t groups = (side_by_side + kWarp - 1) / kWarp;
    width_ = static_cast<unsigned>((side_by_side + groups - 1) / groups);
    slots_ = kRowThreads / width_;
    grid_ = grid_of(r, groups, kRowThreads);
    const int64_t wanted = kRounds * kFewBlocks * r.properties().multiprocessors / grid_.blocks.x;
    const int64_t parts = std::min(wanted, view_.outer / slots_ / kLeastRows);
    grid_.blocks.y = static_cast<unsigned>(std::max<int64_t>(1, parts));
  }

  ChannelView view_;
  Way way_ = Way::kAny;
  bool has_few_ = false;  // of elements in a piece
  unsigned width_ = 1, slots_ = 1;
  Grid grid_;
};

}  // namespace plumb::cuda::norm
