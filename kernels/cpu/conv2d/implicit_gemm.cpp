#include "kernels/cpu/conv2d/implicit_gemm.h"

#include <algorithm>
#include <vector>

#include "core/memory.h"
#include "dispatch/pack.h"
#include "kernels/cpu/conv2d/conv_tensors.h"
#include "kernels/cpu/conv2d/input_phases.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/movement/copy_strided.h"

namespace plumb::cpu {
namespace {

// Products with fewer columns leave most of a vector empty.
constexpr int64_t kLeastColumns = 4;

// w (OC, IC / groups, KH, KW), in its own order or with its channels innermost: (OC, KH, KW, IC / groups).
struct TapWeights {
  int64_t outputs, channels, rows, columns;
  explicit TapWeights(const Shape& w) : outputs(w[0]), channels(w[1]), rows(w[2]), columns(w[3]) {}
  int64_t pixels() const { return rows * columns; }
  int64_t taps() const { return pixels() * channels; }
  int64_t numel() const { return outputs * taps(); }
  bool is_either() const { return pixels() == 1 || channels == 1; }
  bool operator==(const TapWeights&) const = default;

  /// Puts each output's matrix, of `channels` rows of pixels or `pixels` rows of channels, the other way round.
  std::unique_ptr<Kernel> turn(bool to_channels_innermost, DType dtype = DType::kF32) const {
    const int64_t from_columns = to_channels_innermost ? pixels() : channels;
    const int64_t to_columns = taps() / from_columns;
    const TensorSpec y(Shape{outputs, from_columns, to_columns}, dtype);
    Strides of_x;
    of_x.of[0] = taps(), of_x.of[1] = 1, of_x.of[2] = from_columns;
    return copy_strided(strided_loop<1>(y, {of_x}), 0, y).make();
  }
  Layout innermost_channels() const {
    const auto make = [w = *this](const TensorSpec&) { return w.turn(true); };
    return register_pack(*this, {"channels_innermost", static_cast<size_t>(numel()) * sizeof(float), make});
  }
};

struct Conv : ConvTensors {
  TapWeights weights{w.shape};

  bool applies(InnerProduct which) const {
    if (x.layout != Layout::kNhwc || y.layout != Layout::kNhwc || is_empty()) return false;
    if (x.dtype != DType::kF32 && which != InnerProduct::kBackwardWeight) return false;
    switch (which) {
      case InnerProduct::kForward: return outputs() >= kLeastColumns;
      case InnerProduct::kBackwardInput: return weights.channels >= kLeastColumns;
      case InnerProduct::kBackwardWeight: return weights.taps() >= kLeastColumns;
    }
    return false;
  }
  int64_t outputs() const { return weights.outputs / params.groups; }  // of a group
  int64_t pixels() const { return y.shape[0] * y.shape[2] * y.shape[3]; }
  // What y's pixels see of x, in a group.
  ImageWindows windows() const { return windows_of(x.shape, w.shape, y.shape, params); }
};

std::unique_ptr<Kernel> forward(const Conv& c, int threads) {
  const PackedProducts products(c.params.groups, c.pixels(), c.outputs(), c.weights.taps(), threads);
  auto kernel = make_kernel("plumb:implicit_gemm", [=, windows = c.windows()](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    products.run(static_cast<float*>(l.workspace), [&](int64_t group, const PackedProduct& product, float* memory) {
      const int64_t first = group * c.outputs();
      const WindowRows a(windows, in(0) + group * c.weights.channels);
      const MatrixPanels<kBlockColumns> b({in(1) + first * c.weights.taps(), 1, c.weights.taps()}, c.outputs());
      product.run(a, b,
                  {static_cast<float*>(l.out[0]) + first,
                   {c.weights.outputs},
                   c.has_bias ? in(2) + first : nullptr,
                   c.params.activation == Activation::kRelu},
                  memory);
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(products.floats()) * sizeof(float);
  return kernel;
}

// Some taps of w with channels innermost, as columns of b: at each depth a tap and one of a group's outputs.
class TapColumns final : public PanelSource {
 public:
  TapColumns(const TapWeights& w, int64_t outputs, const std::vector<int64_t>& taps, const float* at)
      : w_(w), outputs_(outputs), taps_(taps), at_(at) {}
  void pack(float* to, Range lines, Range depths) const override {
    for (int64_t d = depths.begin; d < depths.end;) {
      const int64_t tap = d / outputs_, end = std::min(depths.end, (tap + 1) * outputs_);
      const Operand<float> one{at_ + taps_[static_cast<size_t>(tap)] * w_.channels, w_.taps(), 1};
      const Range outputs{d - tap * outputs_, end - tap * outputs_};
      PanelPacker<kBlockColumns>(one, outputs, w_.channels, depths.size())
          .pack(to + (d - depths.begin) * kBlockColumns, lines);
      d = end;
    }
  }

 private:
  const TapWeights& w_;
  int64_t outputs_;
  const std::vector<int64_t>& taps_;
  const float* at_;
};

// The gradient of the pixels of x of one phase.
struct PhaseProducts {
  InputPhase phase;
  PackedProducts products;
  PhaseProducts(const Conv& c, InputPhase of, int threads)
      : phase(std::move(of)),
        products(c.params.groups, c.x.shape[0] * phase.windows.out_height * phase.windows.out_width, c.weights.channels,
                 phase.windows.taps(), threads) {}
};

std::unique_ptr<Kernel> backward_input(const Conv& c, int threads) {
  InputPhases of_x = input_phases(c.x.shape, c.w.shape, c.y.shape, c.params);
  std::vector<PhaseProducts> phases;
  int64_t floats = 0;
  for (InputPhase& phase : of_x.all) {
    phases.emplace_back(c, std::move(phase), threads);
    floats = std::max(floats, phases.back().products.floats());
  }
  auto kernel = make_kernel(
      "plumb:implicit_gemm", [=, phases = std::move(phases), left_out = of_x.leave_pixels_out](const Launch& l) {
        auto* dx = static_cast<float*>(l.out[0]);
        const auto *dy = static_cast<const float*>(l.in[0]), *w = static_cast<const float*>(l.in[1]);
        if (left_out) put_zeros(dx, c.x.numel());
        for (const auto& [phase, products] : phases) {
          const auto one = [&](int64_t group, const PackedProduct& product, float* memory) {
            const int64_t first = group * c.outputs();
            const WindowRows a(phase.windows, dy + first);
            const TapColumns b(c.weights, c.outputs(), phase.taps, w + first * c.weights.taps());
            product.run(a, b, {dx + phase.at + group * c.weights.channels, phase.places}, memory);
          };
          products.run(static_cast<float*>(l.workspace), one);
        }
      });
  kernel->info().workspace_bytes = static_cast<size_t>(floats) * sizeof(float);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> backward_weight(const Conv& c, int threads) {
  constexpr bool is_f32 = kInWord<T> == 1;
  const PackedProducts products(c.params.groups, c.outputs(), c.weights.taps(), ceil_div(c.pixels(), kInWord<T>),
                                threads);
  std::shared_ptr<const Kernel> turn = c.weights.is_either() ? nullptr : c.weights.turn(false, dtype_of<T>);
  const auto bytes = [](int64_t count, size_t of_one) { return detail::aligned(static_cast<size_t>(count) * of_one); };
  const size_t turned = turn ? bytes(c.weights.numel(), sizeof(T)) : 0;
  const bool has_sums = !is_f32 && products.keeps_sums();
  const size_t summed = has_sums ? bytes(c.weights.numel(), sizeof(float)) : 0;
  auto kernel = make_kernel("plumb:implicit_gemm", [=, windows = c.windows()](const Launch& l) {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]);
    void* dw = turn ? l.workspace : l.out[0];
    const auto floats = [&](size_t at) { return reinterpret_cast<float*>(static_cast<char*>(l.workspace) + at); };
    products.run(floats(turned + summed), [&](int64_t group, const PackedProduct& product, float* panels) {
      const int64_t first = group * c.outputs(), at = first * c.weights.taps();
      const MatrixPanels<kBlockRows, T> a({dy + first, c.weights.outputs, 1, c.pixels()}, c.outputs());
      const WindowColumns<T> b(windows, x + group * c.weights.channels, c.pixels());
      PackedResult result{static_cast<T*>(dw) + at, {c.weights.taps()}};
      if (!is_f32) result.sums = has_sums ? floats(turned) + at : nullptr;
      product.run(a, b, result, panels);
    });
    if (turn) turn->run({&dw, l.out, nullptr});
  });
  kernel->info().workspace_bytes = turned + summed + static_cast<size_t>(products.floats()) * sizeof(float);
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> conv2d_implicit_gemm(InnerProduct which, const Problem<Conv2dParams>& p) {
  const Conv c{ConvTensors(which, p)};
  if (!c.applies(which)) return nullptr;
  if (which == InnerProduct::kBackwardWeight) {
    return dispatch_words(c.x.dtype, [&]<class T>() { return backward_weight<T>(c, p.threads); });
  }
  auto kernel = which == InnerProduct::kForward ? forward(c, p.threads) : backward_input(c, p.threads);
  if (!c.weights.is_either()) kernel->info().packs.push_back({1, c.weights.innermost_channels()});
  return kernel;
}

}  // namespace plumb::cpu
