// One kernel does both forward and backward input. The tensor that it writes is the result, the one that it reads the
// source. Each element of the result sums products over the source's channels and over all places that the window
// connects it to. A block of the result's channels, two vectors of images wide, stays in registers; w is not repacked.
#include "kernels/cpu/conv2d/conv2d_chwn.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

constexpr int kMostVectors = 2;
constexpr int kMostChannels = (simd::kRegisters - 4) / kMostVectors;
constexpr int64_t kMostImages = kMostVectors * kLanes;

// One row (or column) of the window for a given row (column) of the result: its offsets in the source and in w.
struct Tap {
  int64_t source, weight;
};
// The taps of every row (or column) of the result, ordered by their offset in the source.
class Taps {
 public:
  // source_at(i, k) is the source index that window element k connects to result index i, or -1 if it is outside.
  template <class SourceAt>
  Taps(int64_t extent, int64_t window, int64_t source_step, int64_t weight_step, const SourceAt& source_at) {
    for (int64_t i = 0; i < extent; ++i) {
      for (int64_t k = 0; k < window; ++k) {
        if (const int64_t at = source_at(i, k); at >= 0) taps_.push_back({at * source_step, k * weight_step});
      }
      std::sort(taps_.begin() + static_cast<std::ptrdiff_t>(ends_.back()), taps_.end(),
                [](const Tap& a, const Tap& b) { return a.source < b.source; });
      ends_.push_back(taps_.size());
    }
  }
  std::span<const Tap> operator[](int64_t i) const {
    const auto k = static_cast<size_t>(i);
    return std::span(taps_).subspan(ends_[k], ends_[k + 1] - ends_[k]);
  }

 private:
  std::vector<Tap> taps_;
  std::vector<size_t> ends_{0};
};

struct Plan {
  int64_t N, groups, height, width;      // of the result
  int64_t channels, source_channels;     // per group
  int64_t plane, source_plane;           // elements per channel
  int64_t w_channel, w_source, w_group;  // strides in w: per channel of the result, of the source, per group
  int64_t next;                          // from a source column to the one that the next pixel adds
  Taps rows, columns;
  bool bias = false, relu = false;
};

// The operands of one block: pointers to its first channel and image.
template <class T>
struct Operands {
  const T *source, *w, *b;
  T* y;
  std::span<const Tap> rows, columns;
  int64_t images;
};

template <class T, int kChannels, int kVectors, bool kWhole>
void block(const Plan& p, const Operands<T>& o) {
  const auto left = [&](int v) { return std::min(kLanes, o.images - v * kLanes); };
  Vec sum[kChannels][kVectors];
#pragma GCC unroll 16
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[c][v] = o.b ? simd::broadcast(o.b + c) : Vec{};
  }
  const T *source = o.source, *w = o.w;
  const int64_t next = o.columns.empty() ? 0 : o.columns.back().source + p.next;
  for (int64_t i = 0; i < p.source_channels; ++i, source += p.source_plane, w += p.w_source) {
    for (const Tap& row : o.rows) {
      for (const Tap& column : o.columns) {
        const T *from = source + row.source + column.source, *with = w + row.weight + column.weight;
        Vec e[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          e[v] = kWhole ? simd::load(from + v * kLanes) : simd::load(from + v * kLanes, left(v));
        }
#pragma GCC unroll 16
        for (int c = 0; c < kChannels; ++c) {
          const Vec f = simd::broadcast(with + c * p.w_channel);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[c][v] += f * e[v];
        }
      }
      // Channels and rows are far apart, and the processor does not prefetch across such gaps.
      constexpr int64_t kBytes = kVectors * kLanes * static_cast<int64_t>(sizeof(T));
      for (int64_t byte = 0; byte < kBytes; byte += 64) {
        simd::fetch(source + row.source, next * static_cast<int64_t>(sizeof(T)) + byte);
      }
      simd::fetch(source + row.source, next * static_cast<int64_t>(sizeof(T)) + kBytes - 1);
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vec s = p.relu ? simd::relu(sum[c][v]) : sum[c][v];
      T* to = o.y + c * p.plane + v * kLanes;
      kWhole ? simd::store(to, s) : simd::store(to, s, left(v));
    }
  }
}

template <class T>
using Block = void (*)(const Plan&, const Operands<T>&);
template <class T, int kVectors, bool kWhole, int... channels>
constexpr std::array<Block<T>, sizeof...(channels)> blocks_of(std::integer_sequence<int, channels...>) {
  return {&block<T, channels + 1, kVectors, kWhole>...};
}
// Indexed by the number of channels - 1.
template <class T, int kVectors, bool kWhole>
constexpr auto kBlocks = blocks_of<T, kVectors, kWhole>(std::make_integer_sequence<int, kMostChannels>());

template <class T>
Block<T> block_for(int64_t channels, int64_t images) {
  const auto i = static_cast<size_t>(channels - 1);
  if (images == kMostImages) return kBlocks<T, kMostVectors, true>[i];
  if (images > kLanes) return kBlocks<T, kMostVectors, false>[i];
  return images == kLanes ? kBlocks<T, 1, true>[i] : kBlocks<T, 1, false>[i];
}

template <class T>
class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(Plan plan) : Kernel("plumb:chwn_direct"), p_(std::move(plan)) {}
  void run(const Launch& l) const override {
    const int64_t chunks = ceil_div(p_.N, kMostImages);
    const int64_t blocks = ceil_div(p_.channels, kMostChannels);
    // Blocks of channels are innermost, so that the part of the source they share stays in a cache.
    parallel_for(p_.groups * p_.height * chunks * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i % blocks, chunk = i / blocks % chunks, row = i / blocks / chunks;
        run_row(l, row / p_.height, row % p_.height, chunk * kMostImages, p_.channels * b / blocks,
                p_.channels * (b + 1) / blocks);
      }
    });
  }

 private:
  void run_row(const Launch& l, int64_t group, int64_t h, int64_t image, int64_t first, int64_t last) const {
    const int64_t channel = group * p_.channels + first;
    Operands<T> o;
    o.source = static_cast<const T*>(l.in[0]) + group * p_.source_channels * p_.source_plane + image;
    o.w = static_cast<const T*>(l.in[1]) + group * p_.w_group + first * p_.w_channel;
    o.b = p_.bias ? static_cast<const T*>(l.in[2]) + channel : nullptr;
    o.y = static_cast<T*>(l.out[0]) + channel * p_.plane + h * p_.width * p_.N + image;
    o.rows = p_.rows[h];
    o.images = std::min(kMostImages, p_.N - image);
    const Block<T> block = block_for<T>(last - first, o.images);
    for (int64_t i = 0; i < p_.width; ++i, o.y += p_.N) {
      o.columns = p_.columns[i];
      block(p_, o);
    }
  }
  Plan p_;
};

std::unique_ptr<Kernel> make(const Problem<Conv2dParams>& problem, bool is_forward) {
  const TensorSpec &source = problem.in[0], &w = problem.in[1], &result = problem.out[0];
  if (!conv2d_chwn_fits(source, w, result)) return nullptr;
  const Conv2dParams& p = problem.params;
  const int64_t N = result.shape[0], H = result.shape[2], W = result.shape[3], KH = w.shape[2], KW = w.shape[3];
  const int64_t source_H = source.shape[2], source_W = source.shape[3];
  const int64_t OC = w.shape[0] / p.groups, IC = w.shape[1];
  // Of the rows (dimension 0) or the columns (dimension 1).
  const auto taps = [&](int d, int64_t source_step, int64_t weight_step) {
    const int64_t extent = source.shape[2 + d], stride = p.stride[d], padding = p.padding[2 * d];
    const auto source_at = [&, dilation = p.dilation[d]](int64_t i, int64_t k) -> int64_t {
      const int64_t moved = is_forward ? i * stride - padding + k * dilation : i + padding - k * dilation;
      if (!is_forward && moved % stride != 0) return -1;
      const int64_t at = is_forward ? moved : moved / stride;
      return at < extent ? at : -1;
    };
    return Taps(result.shape[2 + d], w.shape[2 + d], source_step, weight_step, source_at);
  };
  Plan plan{.N = N,
            .groups = p.groups,
            .height = H,
            .width = W,
            .channels = is_forward ? OC : IC,
            .source_channels = is_forward ? IC : OC,
            .plane = H * W * N,
            .source_plane = source_H * source_W * N,
            .w_channel = is_forward ? IC * KH * KW : KH * KW,
            .w_source = is_forward ? KH * KW : IC * KH * KW,
            .w_group = OC * IC * KH * KW,
            .next = is_forward ? p.stride[1] * N : N,
            .rows = taps(0, source_W * N, KW),
            .columns = taps(1, N, 1),
            .bias = problem.in.size() == 3,
            .relu = is_forward && p.activation == Activation::kRelu};
  if (result.dtype == DType::kBf16) return std::make_unique<GatherKernel<Bfloat16>>(std::move(plan));
  return std::make_unique<GatherKernel<float>>(std::move(plan));
}

}  // namespace

std::unique_ptr<Kernel> conv2d_chwn_forward(const Problem<Conv2dParams>& p) { return make(p, true); }
std::unique_ptr<Kernel> conv2d_chwn_backward_input(const Problem<Conv2dParams>& p) { return make(p, false); }

}  // namespace plumb::cpu
