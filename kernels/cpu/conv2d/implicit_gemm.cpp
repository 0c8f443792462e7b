#include "kernels/cpu/conv2d/implicit_gemm.h"

#include <algorithm>
#include <vector>

#include "core/memory.h"
#include "dispatch/pack.h"
#include "kernels/cpu/conv2d/window_panels.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/movement/copy_strided.h"

namespace plumb::cpu {
namespace {

using Params = Conv2dParams;

// Products with fewer columns leave most of a vector empty.
constexpr int64_t kLeastColumns = 4;

// w (OC, IC / groups, KH, KW), in its own order or with its channels innermost: (OC, KH, KW, IC / groups).
struct Weights {
  int64_t outputs, channels, rows, columns;
  explicit Weights(const Shape& w) : outputs(w[0]), channels(w[1]), rows(w[2]), columns(w[3]) {}
  int64_t pixels() const { return rows * columns; }
  int64_t taps() const { return pixels() * channels; }
  int64_t numel() const { return outputs * taps(); }
  bool is_either() const { return pixels() == 1 || channels == 1; }
  bool operator==(const Weights&) const = default;

  /// Puts each output's matrix, of `channels` rows of pixels or `pixels` rows of channels, the other way round.
  std::unique_ptr<Kernel> turn(bool to_channels_innermost) const {
    const int64_t from_columns = to_channels_innermost ? pixels() : channels;
    const int64_t to_columns = taps() / from_columns;
    const TensorSpec y(Shape{outputs, from_columns, to_columns});
    Strides of_x;
    of_x.of[0] = taps(), of_x.of[1] = 1, of_x.of[2] = from_columns;
    return copy_strided(strided_loop<1>(y, {of_x}), 0, y).make();
  }
  Layout innermost_channels() const {
    const auto make = [w = *this](const TensorSpec&) { return w.turn(true); };
    return register_pack(*this, {"channels_innermost", static_cast<size_t>(numel()) * sizeof(float), make});
  }
};

// A convolution's tensors, of which one is the result.
struct Conv {
  TensorSpec x, y;
  Weights w;
  Params p;

  bool applies(InnerProduct which) const {
    if (x.layout != Layout::kNhwc || y.layout != Layout::kNhwc || x.dtype != DType::kF32) return false;
    if (!x.numel() || !w.numel() || !y.numel()) return false;
    switch (which) {
      case InnerProduct::kForward: return outputs() >= kLeastColumns;
      case InnerProduct::kBackwardInput: return w.channels >= kLeastColumns;
      case InnerProduct::kBackwardWeight: return w.taps() >= kLeastColumns;
    }
    return false;
  }
  int64_t outputs() const { return w.outputs / p.groups; }  // of a group
  int64_t pixels() const { return y.shape[0] * y.shape[2] * y.shape[3]; }
  // What y's pixels see of x, in a group.
  ImageWindows windows() const {
    return {.height = x.shape[2],
            .width = x.shape[3],
            .pixel = x.shape[1],
            .channels = w.channels,
            .out_height = y.shape[2],
            .out_width = y.shape[3],
            .top = -p.padding[0],
            .left = -p.padding[2],
            .stride_h = p.stride[0],
            .stride_w = p.stride[1],
            .rows = w.rows,
            .columns = w.columns,
            .row_step = p.dilation[0],
            .column_step = p.dilation[1]};
  }
};

std::unique_ptr<Kernel> forward(const Conv& c, bool bias, int threads) {
  const PackedProducts products(c.p.groups, c.pixels(), c.outputs(), c.w.taps(), threads);
  auto kernel = make_kernel("plumb:implicit_gemm", [=, windows = c.windows()](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    products.run(static_cast<float*>(l.workspace), [&](int64_t group, const PackedProduct& product, float* memory) {
      const int64_t first = group * c.outputs();
      const WindowRows a(windows, in(0) + group * c.w.channels);
      const MatrixPanels<kBlockColumns> b({in(1) + first * c.w.taps(), 1, c.w.taps()}, c.outputs());
      product.run(a, b,
                  {static_cast<float*>(l.out[0]) + first,
                   {c.w.outputs},
                   bias ? in(2) + first : nullptr,
                   c.p.activation == Activation::kRelu},
                  memory);
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(products.floats()) * sizeof(float);
  return kernel;
}

// Along one dimension, the elements of x that are `phase` more than a multiple of the stride: the same taps of w reach
// them, from elements of y that are neighbours (or `step` apart), from `first` on.
struct Phase {
  int64_t phase, count, first = 0, step = 1;
  std::vector<int64_t> taps;  // of w, in the order of y's elements

  Phase(int64_t which, int64_t extent, int64_t taps_of_w, int64_t stride, int64_t dilation, int64_t padding)
      : phase(which), count(ceil_div(extent - which, stride)) {
    for (int64_t tap = taps_of_w - 1; tap >= 0; --tap) {
      const int64_t at = which + padding - tap * dilation;
      if (at % stride != 0) continue;
      if (taps.empty()) first = at / stride;
      if (taps.size() == 1) step = at / stride - first;
      taps.push_back(tap);
    }
  }
};

// Some taps of w with channels innermost, as columns of b: at each depth a tap and one of a group's outputs.
class TapColumns final : public PanelSource {
 public:
  TapColumns(const Weights& w, int64_t outputs, const std::vector<int64_t>& taps, const float* at)
      : w_(w), outputs_(outputs), taps_(taps), at_(at) {}
  void pack(float* to, Range lines, Range depths) const override {
    for (int64_t d = depths.begin; d < depths.end;) {
      const int64_t tap = d / outputs_, end = std::min(depths.end, (tap + 1) * outputs_);
      const Operand one{at_ + taps_[static_cast<size_t>(tap)] * w_.channels, w_.taps(), 1};
      const Range outputs{d - tap * outputs_, end - tap * outputs_};
      PanelPacker<kBlockColumns>(one, outputs, w_.channels, depths.size())
          .pack(to + (d - depths.begin) * kBlockColumns, lines);
      d = end;
    }
  }

 private:
  const Weights& w_;
  int64_t outputs_;
  const std::vector<int64_t>& taps_;
  const float* at_;
};

// The pixels of x of one phase in each dimension: a convolution of y with some of the taps.
struct PhaseOfImage {
  ImageWindows windows;
  std::vector<int64_t> taps;
  int64_t at;  // the first pixel's offset in dx
  RowPlaces places;
  PackedProducts products;

  PhaseOfImage(const Conv& c, const Phase& h, const Phase& w, int threads)
      : windows{.height = c.y.shape[2],
                .width = c.y.shape[3],
                .pixel = c.y.shape[1],
                .channels = c.outputs(),
                .out_height = h.count,
                .out_width = w.count,
                .top = h.first,
                .left = w.first,
                .stride_h = 1,
                .stride_w = 1,
                .rows = static_cast<int64_t>(h.taps.size()),
                .columns = static_cast<int64_t>(w.taps.size()),
                .row_step = h.step,
                .column_step = w.step},
        at((h.phase * c.x.shape[3] + w.phase) * c.x.shape[1]),
        places{.step = c.p.stride[1] * c.x.shape[1],
               .in_run = w.count,
               .run_step = c.p.stride[0] * c.x.shape[3] * c.x.shape[1],
               .runs = h.count,
               .group_step = c.x.shape[2] * c.x.shape[3] * c.x.shape[1]},
        products(c.p.groups, c.x.shape[0] * h.count * w.count, c.w.channels, windows.taps(), threads) {
    for (const int64_t row : h.taps) {
      for (const int64_t column : w.taps) taps.push_back(row * c.w.columns + column);
    }
  }
};

std::unique_ptr<Kernel> backward_input(const Conv& c, int threads) {
  std::vector<PhaseOfImage> phases;
  bool leaves_pixels_out = false;
  int64_t floats = 0;
  for (int64_t i = 0; i < std::min<int64_t>(c.p.stride[0], c.x.shape[2]); ++i) {
    const Phase h(i, c.x.shape[2], c.w.rows, c.p.stride[0], c.p.dilation[0], c.p.padding[0]);
    for (int64_t j = 0; j < std::min<int64_t>(c.p.stride[1], c.x.shape[3]); ++j) {
      const Phase w(j, c.x.shape[3], c.w.columns, c.p.stride[1], c.p.dilation[1], c.p.padding[2]);
      if (h.taps.empty() || w.taps.empty()) {
        leaves_pixels_out = true;
        continue;
      }
      phases.emplace_back(c, h, w, threads);
      floats = std::max(floats, phases.back().products.floats());
    }
  }
  auto kernel = make_kernel("plumb:implicit_gemm", [=, phases = std::move(phases)](const Launch& l) {
    auto* dx = static_cast<float*>(l.out[0]);
    const auto *dy = static_cast<const float*>(l.in[0]), *w = static_cast<const float*>(l.in[1]);
    if (leaves_pixels_out) {
      parallel_for(c.x.numel(), kGrainBytes / 4,
                   [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, 0.0f); });
    }
    for (const PhaseOfImage& phase : phases) {
      const auto one = [&](int64_t group, const PackedProduct& product, float* memory) {
        const int64_t first = group * c.outputs();
        const WindowRows a(phase.windows, dy + first);
        const TapColumns b(c.w, c.outputs(), phase.taps, w + first * c.w.taps());
        product.run(a, b, {dx + phase.at + group * c.w.channels, phase.places}, memory);
      };
      phase.products.run(static_cast<float*>(l.workspace), one);
    }
  });
  kernel->info().workspace_bytes = static_cast<size_t>(floats) * sizeof(float);
  return kernel;
}

std::unique_ptr<Kernel> backward_weight(const Conv& c, int threads) {
  const PackedProducts products(c.p.groups, c.outputs(), c.w.taps(), c.pixels(), threads);
  std::shared_ptr<const Kernel> turn = c.w.is_either() ? nullptr : c.w.turn(false);
  const size_t turned = turn ? detail::aligned(static_cast<size_t>(c.w.numel()) * sizeof(float)) : 0;
  auto kernel = make_kernel("plumb:implicit_gemm", [=, windows = c.windows()](const Launch& l) {
    const auto *dy = static_cast<const float*>(l.in[0]), *x = static_cast<const float*>(l.in[1]);
    void* dw = turn ? l.workspace : l.out[0];
    auto* memory = reinterpret_cast<float*>(static_cast<char*>(l.workspace) + turned);
    products.run(memory, [&](int64_t group, const PackedProduct& product, float* panels) {
      const int64_t first = group * c.outputs();
      const MatrixPanels<kBlockRows> a({dy + first, c.w.outputs, 1}, c.outputs());
      const WindowColumns b(windows, x + group * c.w.channels);
      product.run(a, b, {static_cast<float*>(dw) + first * c.w.taps(), {c.w.taps()}}, panels);
    });
    if (turn) turn->run({&dw, l.out, nullptr});
  });
  kernel->info().workspace_bytes = turned + static_cast<size_t>(products.floats()) * sizeof(float);
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> conv2d_implicit_gemm(InnerProduct which, const Problem<Params>& p) {
  const bool is_forward = which == InnerProduct::kForward, of_w = which == InnerProduct::kBackwardWeight;
  const TensorSpec &x = is_forward ? p.in[0] : of_w ? p.in[1] : p.out[0], &y = is_forward ? p.out[0] : p.in[0];
  const Conv c{x, y, Weights((of_w ? p.out[0] : p.in[1]).shape), p.params};
  if (!c.applies(which)) return nullptr;
  if (of_w) return backward_weight(c, p.threads);
  auto kernel = is_forward ? forward(c, p.in.size() == 3, p.threads) : backward_input(c, p.threads);
  if (!c.w.is_either()) kernel->info().packs.push_back({1, c.w.innermost_channels()});
  return kernel;
}

}  // namespace plumb::cpu
