#include "kernels/cpu/conv2d/group_lanes.h"

#include <bit>
#include <vector>

#include "dispatch/pack.h"
#include "kernels/cpu/conv2d/conv_tensors.h"
#include "kernels/cpu/conv2d/group_lanes_weight.h"
#include "kernels/cpu/conv2d/input_phases.h"
#include "kernels/cpu/conv2d/lane_blocks.h"

namespace plumb::cpu {
namespace {

// w (OC, OC / groups, KH, KW) by lanes: a lane is an input, or, turned, an output.
struct LaneWeights {
  LaneVectors lanes;
  bool is_turned;
  bool operator==(const LaneWeights&) const = default;

  Layout by_lanes() const {
    const auto make = [w = *this](const TensorSpec&) {
      return make_kernel("plumb:by_lanes", [w](const Launch& l) {
        w.put(static_cast<const float*>(l.in[0]), static_cast<float*>(l.out[0]));
      });
    };
    return register_pack(*this, {"by_lanes", static_cast<size_t>(lanes.floats()) * sizeof(float), make});
  }

 private:
  void put(const float* w, float* to) const {
    parallel_for(lanes.count(), kGrainBytes / (4 * lanes.of_vector()), [&](int64_t begin, int64_t end) {
      for (int64_t vector = begin; vector < end; ++vector) put_vector(w, to + vector * lanes.of_vector(), vector);
    });
  }
  void put_vector(const float* w, float* to, int64_t vector) const {
    for (int64_t tap = 0; tap < lanes.taps; ++tap, to += lanes.of_tap()) {
      lanes.each_pair(vector, [&](int64_t place, int64_t channel, int64_t other) {
        const int64_t output = is_turned ? channel : other, input = is_turned ? other : channel;
        to[place] = w[(output * lanes.of_group + input % lanes.of_group) * lanes.taps + tap];
      });
    }
  }
};

// Windows of one kind, the taps of w that they meet, and where their sums go.
struct Windows {
  ImageWindows from;
  int64_t images;
  int64_t w_first, w_row, w_column;  // of the taps, in floats
  int64_t at;                        // of the first window in the result
  RowPlaces places;
};

// A convolution by such windows, row by row.
class Pass {
 public:
  struct Pointers {
    const float *x, *w;
    float* y;
    const float* bias;  // or null
  };

  Pass(const Windows& windows, const LaneVectors& lanes, bool relu)
      : w_(windows),
        lanes_(lanes),
        relu_(relu),
        whole_(columns_inside()),
        blocks_(lane_blocks(lanes.of_group)),
        columns_(whole_.size(), blocks_.beside),
        vectors_(lanes.full(), blocks_.vectors) {}

  int64_t rows() const { return w_.images * w_.from.out_height; }

  void run(int64_t row, const Pointers& p) const {
    const LaneWindows first = first_of_row(row, p);
    for (int64_t i = 0; i < whole_.begin; ++i) convolve_cut_off(first, i);
    lanes_.floats() <= kFewWeights ? convolve_across(first) : convolve_beside(first);
    for (int64_t i = whole_.end; i < w_.from.out_width; ++i) convolve_cut_off(first, i);
  }

 private:
  static constexpr int64_t kFewWeights = (int64_t{16} << 10) / 4;  // half of a first-level cache

  // Whether the channels leave a last vector, which begins early.
  bool has_last_vector() const { return lanes_.count() > lanes_.full(); }
  // The windows of a row that have whole rows of taps inside the image.
  Range columns_inside() const {
    const ImageWindows& f = w_.from;
    return inside(f.left, f.stride_w, f.out_width, f.width - (f.columns - 1) * f.column_step);
  }

  // The first vector of a row of windows, at the image's first column: meet() goes on to a window, go_to() to a vector.
  LaneWindows first_of_row(int64_t row, const Pointers& p) const {
    const ImageWindows& f = w_.from;
    const int64_t image = row / f.out_height, of_image = row % f.out_height, top = f.top + of_image * f.stride_h;
    Range down = inside(top, f.row_step, f.rows, f.height);
    if (down.size() == 0) down = {0, 0};
    const int64_t first_row = down.size() > 0 ? image * f.height + top + down.begin * f.row_step : 0;
    return {.x = p.x + first_row * f.width * f.pixel,
            .w = p.w + w_.w_first + down.begin * w_.w_row,
            .y = p.y + w_.at + image * w_.places.group_step + of_image * w_.places.run_step,
            .bias = p.bias,
            .rows = down.size(),
            .columns = 0,
            .x_row = f.row_step * f.width * f.pixel,
            .x_column = f.column_step * f.pixel,
            .w_row = w_.w_row,
            .w_column = w_.w_column,
            .x_step = f.stride_w * f.pixel,
            .y_step = w_.places.step,
            .w_vector = lanes_.of_vector(),
            .relu = relu_};
  }
  // From the first window of a row to this one, which meets these columns of its taps.
  void meet(LaneWindows& at, int64_t column, Range taps) const {
    const ImageWindows& f = w_.from;
    at.y += column * w_.places.step;
    at.columns = taps.size();
    if (taps.size() == 0) return;
    at.x += (f.left + column * f.stride_w + taps.begin * f.column_step) * f.pixel;
    at.w += taps.begin * w_.w_column;
  }
  void go_to(LaneWindows& at, int64_t vector) const {
    const int64_t channel = lanes_.first_channel(vector);
    at.x += channel, at.y += channel, at.w += vector * lanes_.of_vector();
    if (at.bias) at.bias += channel;
  }
  // Whole windows, a few of them for all vectors: memory is gone through in its order.
  void convolve_across(const LaneWindows& first) const {
    for (int64_t column = whole_.begin; column < whole_.end; column += columns_.size) {
      const auto block = static_cast<size_t>(std::min(columns_.size, whole_.end - column) - 1);
      LaneWindows at = first;
      meet(at, column, {0, w_.from.columns});
      LaneWindows last = at;
      blocks_.across[block](at, lanes_.full());
      if (!has_last_vector()) continue;
      go_to(last, lanes_.full());
      blocks_.across[block](last, 1);
    }
  }
  // All whole windows for one vector after the other: each vector's weights stay in the first-level cache.
  void convolve_beside(const LaneWindows& first) const {
    if (whole_.size() == 0) return;
    for (int64_t vector = 0; vector < lanes_.count(); ++vector) {
      LaneWindows at = first;
      meet(at, whole_.begin, {0, w_.from.columns});
      go_to(at, vector);
      columns_.convolve(at, blocks_.beside);
    }
  }
  // A window that the image's edge may cut off.
  void convolve_cut_off(LaneWindows at, int64_t column) const {
    const ImageWindows& f = w_.from;
    meet(at, column, inside(f.left + column * f.stride_w, f.column_step, f.columns, f.width));
    LaneWindows last = at;
    vectors_.convolve(at, blocks_.vectors);
    if (!has_last_vector()) return;
    go_to(last, lanes_.full());
    blocks_.vectors[0](last, 1);
  }

  Windows w_;
  LaneVectors lanes_;
  bool relu_;
  Range whole_;
  LaneBlocks blocks_;
  LaneCut columns_, vectors_;
};

// `zeros` of y's elements are zeros before the passes, whose rows are shared out among threads pass by pass: a row of
// one takes longer than that of another.
std::unique_ptr<Kernel> kernel_of(std::vector<Pass> passes, int64_t zeros, bool has_bias, int team) {
  return make_kernel("plumb:group_lanes", [=, passes = std::move(passes)](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    auto* y = static_cast<float*>(l.out[0]);
    if (zeros) put_zeros(y, zeros);
    const Pass::Pointers p{in(0), in(1), y, has_bias ? in(2) : nullptr};
    parallel_team(team, [&](int t, int count) {
      for (size_t i = 0; i < passes.size(); ++i) {
        const Pass& pass = passes[i];
        const Range mine =
            piece(pass.rows(), (t + static_cast<int64_t>(i)) % count, count);  // of few rows, other threads
        for (int64_t row = mine.begin; row < mine.end; ++row) pass.run(row, p);
      }
    });
  });
}

// Fewer products than these take less time than to wake a thread.
constexpr int64_t kGrainProducts = int64_t{64} << 10;

struct Conv : ConvTensors {
  bool applies() const {
    const bool is_f32 = x.dtype == DType::kF32 && w.dtype == DType::kF32;
    if (x.layout != Layout::kNhwc || y.layout != Layout::kNhwc || !is_f32 || is_empty()) return false;
    const bool fills_lanes = std::has_single_bit(static_cast<uint64_t>(w.shape[1])) && w.shape[1] <= simd::kLanes;
    return x.shape[1] == y.shape[1] && fills_lanes && x.shape[1] >= simd::kLanes;
  }
  LaneVectors lanes() const { return {x.shape[1], w.shape[1], w.shape[2] * w.shape[3]}; }
  ImageWindows windows() const { return windows_of(x.shape, w.shape, y.shape, params); }

  // Threads that are worth waking.
  int team(int threads) const {
    const int64_t products = y.numel() * w.shape[1] * w.shape[2] * w.shape[3];
    return static_cast<int>(std::clamp<int64_t>(products / kGrainProducts, 1, threads));
  }
  bool relu() const { return params.activation == Activation::kRelu; }

  Windows of_y() const {
    const int64_t of_tap = lanes().of_tap(), channels = y.shape[1], width = y.shape[3];
    return {.from = windows(),
            .images = x.shape[0],
            .w_first = 0,
            .w_row = w.shape[3] * of_tap,
            .w_column = of_tap,
            .at = 0,
            .places = {.step = channels,
                       .in_run = width,
                       .run_step = width * channels,
                       .runs = y.shape[2],
                       .group_step = y.shape[2] * width * channels}};
  }
  Windows of(const InputPhase& phase) const {
    const std::vector<int64_t>& taps = phase.taps;
    const auto columns = static_cast<size_t>(phase.windows.columns);
    const int64_t of_tap = lanes().of_tap();
    return {.from = phase.windows,
            .images = x.shape[0],
            .w_first = taps[0] * of_tap,
            .w_row = taps.size() > columns ? (taps[columns] - taps[0]) * of_tap : 0,
            .w_column = columns > 1 ? (taps[1] - taps[0]) * of_tap : 0,
            .at = phase.at,
            .places = phase.places};
  }
};

std::unique_ptr<Kernel> forward(const Conv& c, int team) {
  return kernel_of({Pass(c.of_y(), c.lanes(), c.relu())}, 0, c.has_bias, team);
}

std::unique_ptr<Kernel> backward_input(const Conv& c, int team) {
  const InputPhases phases = input_phases(c.x.shape, c.w.shape, c.y.shape, c.params);
  std::vector<Pass> passes;
  for (const InputPhase& phase : phases.all) passes.emplace_back(c.of(phase), c.lanes(), false);
  return kernel_of(std::move(passes), phases.leave_pixels_out ? c.x.numel() : 0, false, team);
}

}  // namespace

std::unique_ptr<Kernel> conv2d_group_lanes(InnerProduct which, const Problem<Conv2dParams>& p) {
  const Conv c{ConvTensors(which, p)};
  if (!c.applies()) return nullptr;
  if (which == InnerProduct::kBackwardWeight) {
    return group_lanes_backward_weight(c.lanes(), c.windows(), c.x.shape[0], c.team(p.threads));
  }
  const bool is_forward = which == InnerProduct::kForward;
  auto kernel = is_forward ? forward(c, c.team(p.threads)) : backward_input(c, c.team(p.threads));
  kernel->info().packs.push_back({1, LaneWeights{c.lanes(), !is_forward}.by_lanes()});
  return kernel;
}

}  // namespace plumb::cpu
