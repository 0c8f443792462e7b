// Forward and backward input are one kernel: every element of the result gathers products over the channels of the other
// tensor and over taps, the places there that the window connects it to.
#include "kernels/cpu/conv2d_chwn.h"

#include <array>
#include <utility>

#include "kernels/cpu/conv2d_chwn_check.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

/// One row (or column) of the window as a row (or column) of the result meets it: offsets in the source and in w.
struct Tap {
  int64_t source, weight;
};
/// The taps of each row (or column) of the result.
class Taps {
 public:
  void add(int64_t source, int64_t weight) { taps_.push_back({source, weight}); }
  void end_of_row() { ends_.push_back(taps_.size()); }
  std::span<const Tap> operator[](int64_t i) const {
    const auto k = static_cast<size_t>(i);
    return std::span(taps_).subspan(ends_[k], ends_[k + 1] - ends_[k]);
  }

 private:
  std::vector<Tap> taps_;
  std::vector<size_t> ends_{0};
};

struct Plan {
  int64_t N, groups, height, width;  // of the result
  int64_t results, sources;          // channels of the result and of the source in a group
  int64_t source_plane;              // elements of one channel of the source
  int64_t result_stride, source_stride, group_stride;  // in w, of channels
  Taps rows, columns;
  bool bias, relu;
};

// Rows of w that are summed at the same time, and vectors of images.
constexpr int kWidth = 2;
constexpr int kMaxRows = (simd::kRegisters - 4) / kWidth;

// What one block of sums works on.
template <class T>
struct Operands {
  const T *x, *w, *b;
  T* y;
  std::span<const Tap> rows, columns;
  int64_t images;
};

template <class T, int kRows, int kVectors, bool kWhole>
void block(const Plan& p, const Operands<T>& o) {
  const auto left = [&](int v) { return std::min(kLanes, o.images - v * kLanes); };
  Vec sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[m][v] = o.b ? simd::broadcast(o.b + m) : Vec{};
  }
  const T *x = o.x, *w = o.w;
  for (int64_t r = 0; r < p.sources; ++r, x += p.source_plane, w += p.source_stride) {
    for (const Tap& row : o.rows) {
      for (const Tap& column : o.columns) {
        const T* from = x + row.source + column.source;
        const T* with = w + row.weight + column.weight;
        Vec e[kVectors];
#ifdef PF
        if (&column == &o.columns.back()) for (int v = 0; v < kVectors; ++v) __builtin_prefetch(from + p.N + v * kLanes, 0, PF);
#endif
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          e[v] = kWhole ? simd::load(from + v * kLanes) : simd::load(from + v * kLanes, left(v));
        }
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          const Vec f = simd::broadcast(with + m * p.result_stride);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[m][v] += f * e[v];
        }
      }
    }
  }
  const int64_t plane = p.height * p.width * p.N;
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vec s = p.relu && true ? (sum[m][v] < Vec{} ? Vec{} : sum[m][v]) : sum[m][v];
      T* to = o.y + m * plane + v * kLanes;
      kWhole ? simd::store(to, s) : simd::store(to, s, left(v));
    }
  }
}

template <class T>
using Block = void (*)(const Plan&, const Operands<T>&);
template <class T, int kVectors, bool kWhole, int... rows>
constexpr std::array<Block<T>, sizeof...(rows)> blocks_of(std::integer_sequence<int, rows...>) {
  return {&block<T, rows + 1, kVectors, kWhole>...};
}
template <class T, int kVectors, bool kWhole>
constexpr auto kBlocks = blocks_of<T, kVectors, kWhole>(std::make_integer_sequence<int, kMaxRows>());

template <class T>
class GatherKernel final : public Kernel {
 public:
  GatherKernel(std::string name, Plan plan) : Kernel(std::move(name)), p_(std::move(plan)) {}
  void run(const Launch& l) const override {
    const int64_t chunks = (p_.N + kWidth * kLanes - 1) / (kWidth * kLanes);
    const int64_t blocks = (p_.results + kMaxRows - 1) / kMaxRows;
    const int64_t tile = std::clamp<int64_t>((TILE << 10) / (p_.sources * 3 * 128) , 1, p_.width), tiles = (p_.width + tile - 1) / tile;
    // By row and images first: a slab of the source stays in the cache while all channels of the result use it.
    parallel_for(p_.groups * p_.height * chunks * blocks * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i % blocks, t = i / blocks % tiles, chunk = i / blocks / tiles % chunks, row = i / blocks / chunks / tiles;
        run_row(l, row / p_.height, row % p_.height, chunk * kWidth * kLanes, p_.results * block / blocks,
                p_.results * (block + 1) / blocks, p_.width * t / tiles, p_.width * (t + 1) / tiles);
      }
    });
  }

 private:
  void run_row(const Launch& l, int64_t group, int64_t h, int64_t image, int64_t first, int64_t last, int64_t v0, int64_t v1) const {
    const int64_t plane = p_.height * p_.width * p_.N, channel = group * p_.results + first;
    Operands<T> o;
    o.x = static_cast<const T*>(l.in[0]) + group * p_.sources * p_.source_plane + image;
    o.w = static_cast<const T*>(l.in[1]) + group * p_.group_stride + first * p_.result_stride;
    o.b = p_.bias ? static_cast<const T*>(l.in[2]) + channel : nullptr;
    o.y = static_cast<T*>(l.out[0]) + channel * plane + h * p_.width * p_.N + image;
    o.rows = p_.rows[h];
    o.images = std::min(kWidth * kLanes, p_.N - image);
    const auto which = static_cast<size_t>(last - first - 1);
    const Block<T> block = o.images == kWidth * kLanes ? kBlocks<T, kWidth, true>[which]
                           : o.images > kLanes         ? kBlocks<T, kWidth, false>[which]
                           : o.images == kLanes        ? kBlocks<T, 1, true>[which]
                                                       : kBlocks<T, 1, false>[which];
    o.y += v0 * p_.N;
    for (int64_t v = v0; v < v1; ++v, o.y += p_.N) {
      o.columns = p_.columns[v];
      block(p_, o);
    }
  }
  Plan p_;
};

template <class T>
std::unique_ptr<Kernel> forward(const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, const Conv2dParams& c,
                                bool bias) {
  const int64_t N = x.shape[0], IH = x.shape[2], IW = x.shape[3], KH = w.shape[2], KW = w.shape[3];
  Plan p;
  p.N = N;
  p.groups = c.groups;
  p.height = y.shape[2];
  p.width = y.shape[3];
  p.results = w.shape[0] / c.groups;
  p.sources = w.shape[1];
  p.source_plane = IH * IW * N;
  p.result_stride = w.shape[1] * KH * KW;
  p.source_stride = KH * KW;
  p.group_stride = p.results * p.result_stride;
  p.bias = bias;
  p.relu = c.activation == Activation::kRelu;
  for (int64_t oh = 0; oh < p.height; ++oh) {
    for (int64_t kh = 0; kh < KH; ++kh) {
      const int64_t ih = oh * c.stride[0] - c.padding[0] + kh * c.dilation[0];
      if (ih >= 0 && ih < IH) p.rows.add(ih * IW * N, kh * KW);
    }
    p.rows.end_of_row();
  }
  for (int64_t ow = 0; ow < p.width; ++ow) {
    for (int64_t kw = 0; kw < KW; ++kw) {
      const int64_t iw = ow * c.stride[1] - c.padding[2] + kw * c.dilation[1];
      if (iw >= 0 && iw < IW) p.columns.add(iw * N, kw);
    }
    p.columns.end_of_row();
  }
  return std::make_unique<GatherKernel<T>>("plumb:conv2d_chwn", std::move(p));
}

template <class T>
std::unique_ptr<Kernel> backward_input(const TensorSpec& dy, const TensorSpec& w, const TensorSpec& dx,
                                       const Conv2dParams& c) {
  const int64_t N = dx.shape[0], OH = dy.shape[2], OW = dy.shape[3], KH = w.shape[2], KW = w.shape[3];
  Plan p;
  p.N = N;
  p.groups = c.groups;
  p.height = dx.shape[2];
  p.width = dx.shape[3];
  p.results = w.shape[1];
  p.sources = w.shape[0] / c.groups;
  p.source_plane = OH * OW * N;
  p.result_stride = KH * KW;
  p.source_stride = w.shape[1] * KH * KW;
  p.group_stride = p.sources * p.source_stride;
  p.bias = p.relu = false;
  for (int64_t ih = 0; ih < p.height; ++ih) {
    for (int64_t kh = 0; kh < KH; ++kh) {
      const int64_t at = ih + c.padding[0] - kh * c.dilation[0];
      if (at >= 0 && at % c.stride[0] == 0 && at / c.stride[0] < OH) p.rows.add(at / c.stride[0] * OW * N, kh * KW);
    }
    p.rows.end_of_row();
  }
  for (int64_t iw = 0; iw < p.width; ++iw) {
    for (int64_t kw = 0; kw < KW; ++kw) {
      const int64_t at = iw + c.padding[2] - kw * c.dilation[1];
      if (at >= 0 && at % c.stride[1] == 0 && at / c.stride[1] < OW) p.columns.add(at / c.stride[1] * N, kw);
    }
    p.columns.end_of_row();
  }
  return std::make_unique<GatherKernel<T>>("plumb:conv2d_chwn", std::move(p));
}

}  // namespace

std::unique_ptr<Kernel> conv2d_chwn_forward(const Problem<Conv2dParams>& p) {
  if (!chwn_fits(p.in[0], p.in[1], p.out[0])) return nullptr;
  const auto make = [&]<class T>() { return forward<T>(p.in[0], p.in[1], p.out[0], p.params, p.in.size() == 3); };
  return p.in[0].dtype == DType::kF32 ? make.template operator()<float>() : make.template operator()<Bfloat16>();
}

std::unique_ptr<Kernel> conv2d_chwn_backward_input(const Problem<Conv2dParams>& p) {
  if (!chwn_fits(p.in[0], p.in[1], p.out[0])) return nullptr;
  const auto make = [&]<class T>() { return backward_input<T>(p.in[0], p.in[1], p.out[0], p.params); };
  return p.in[0].dtype == DType::kF32 ? make.template operator()<float>() : make.template operator()<Bfloat16>();
}

std::unique_ptr<Kernel> conv2d_chwn_backward_weight(const Problem<Conv2dParams>&) { return nullptr; }

}  // namespace plumb::cpu
