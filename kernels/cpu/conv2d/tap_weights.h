// The weights of a convolution of images in NHWC, tap by tap.
#pragma once

#include <algorithm>
#include <vector>

#include "dispatch/pack.h"
#include "kernels/cpu/conv2d/conv_tensors.h"
#include "kernels/cpu/conv2d/window_panels.h"
#include "kernels/cpu/gemm/packed_product.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/gemm/pieces.h"
#include "kernels/cpu/movement/copy_strided.h"

namespace plumb::cpu {

/// w (OC, IC / groups, KH, KW), in its own order or with its channels innermost: (OC, KH, KW, IC / groups).
struct TapWeights {
  DType dtype;
  int64_t outputs, channels, rows, columns;
  explicit TapWeights(const TensorSpec& w)
      : dtype(w.dtype), outputs(w.shape[0]), channels(w.shape[1]), rows(w.shape[2]), columns(w.shape[3]) {}
  int64_t pixels() const { return rows * columns; }
  int64_t taps() const { return pixels() * channels; }
  int64_t numel() const { return outputs * taps(); }
  bool is_either() const { return pixels() == 1 || channels == 1; }
  bool operator==(const TapWeights&) const = default;

  /// Puts each output's matrix, of `channels` rows of pixels or `pixels` rows of channels, the other way round.
  std::unique_ptr<Kernel> turn(bool to_channels_innermost) const {
    const int64_t from_columns = to_channels_innermost ? pixels() : channels;
    const int64_t to_columns = taps() / from_columns;
    const TensorSpec y(Shape{outputs, from_columns, to_columns}, dtype);
    Strides of_x;
    of_x.of[0] = taps(), of_x.of[1] = 1, of_x.of[2] = from_columns;
    return copy_strided(strided_loop<1>(y, {of_x}), 0, y).make();
  }
  Layout innermost_channels() const {
    const auto make = [w = *this](const TensorSpec&) { return w.turn(true); };
    return register_pack(*this, {"channels_innermost", static_cast<size_t>(numel()) * size_of(dtype), make});
  }
};

/// A convolution with such weights.
struct WindowConv : ConvTensors {
  TapWeights weights{w};
  WindowConv(InnerProduct which, const Problem<Conv2dParams>& p) : ConvTensors(which, p) {}

  bool is_nhwc() const { return x.layout == Layout::kNhwc && y.layout == Layout::kNhwc && !is_empty(); }
  int64_t outputs() const { return weights.outputs / params.groups; }  // of a group
  // What y's pixels see of x, in a group.
  ImageWindows windows() const { return windows_of(x.shape, w.shape, y.shape, params); }

  // A group's weights, channels innermost, as columns of b.
  template <class T>
  MatrixPanels<kBlockColumns, T> columns(const T* of_w, int64_t group) const {
    const int64_t taps = weights.taps();
    return {{of_w + group * outputs() * taps, 1, taps, taps}, outputs()};
  }
  // Where a group's outputs go. The bias is all outputs', or null.
  template <class T>
  PackedResult result(T* of_y, int64_t group, const float* bias) const {
    const int64_t first = group * outputs();
    PackedResult to{of_y + first, {weights.outputs}, bias ? bias + first : nullptr};
    to.relu = params.activation == Activation::kRelu;
    to.stream = is_large<T>(y.numel());
    return to;
  }
  // Has the kernel's weights come with channels innermost.
  void ask_for_pack(Kernel& kernel) const {
    if (!weights.is_either()) kernel.info().packs.push_back({1, weights.innermost_channels()});
  }
};

/// Some taps of w with channels innermost, as columns of b: at each depth a tap and one of a group's outputs, or in a
/// word two of them.
template <class T>
class TapColumns final : public PanelSource {
 public:
  TapColumns(const TapWeights& w, int64_t outputs, const std::vector<int64_t>& taps, const T* at)
      : w_(w), words_(outputs / kInWord<T>), taps_(taps), at_(at) {}
  void pack(float* to, Range lines, Range depths) const override {
    for (int64_t d = depths.begin; d < depths.end;) {
      const int64_t tap = d / words_, end = std::min(depths.end, (tap + 1) * words_);
      const Operand<T> one{at_ + taps_[static_cast<size_t>(tap)] * w_.channels, w_.taps(), 1};
      const Range words{d - tap * words_, end - tap * words_};
      PanelPacker<kBlockColumns, T>(one, words, w_.channels, depths.size())
          .pack(to + (d - depths.begin) * kBlockColumns, lines);
      d = end;
    }
  }

 private:
  const TapWeights& w_;
  int64_t words_;  // of a group's outputs
  const std::vector<int64_t>& taps_;
  const T* at_;
};

}  // namespace plumb::cpu
