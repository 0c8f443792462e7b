// Convolutions in NHWC by vectors of channels that stay in registers, row by row of windows: what those whose lanes are
// the channels of whole groups (group_lanes) and those whose lanes are the outputs of one (output_lanes) have in
// common.
#pragma once

#include <algorithm>
#include <vector>

#include "dispatch/pack.h"
#include "kernels/cpu/conv2d/conv_tensors.h"
#include "kernels/cpu/conv2d/input_phases.h"
#include "kernels/cpu/conv2d/lane_blocks.h"

namespace plumb::cpu {

/// Windows of one kind, the taps of w that they meet, and where their sums go.
struct LaneRows {
  struct Pointers {
    const float *x, *w;
    float* y;
    const float* bias;  // or null
  };

  ImageWindows from;
  int64_t images;
  int64_t w_first, w_row, w_column;  // of the taps, in floats
  int64_t at;                        // of the first window in the result
  RowPlaces places;

  int64_t rows() const { return images * from.out_height; }

  /// The windows of a row that have whole rows of taps inside the image.
  Range columns_inside() const {
    return inside(from.left, from.stride_w, from.out_width, from.width - (from.columns - 1) * from.column_step);
  }
  /// The taps in a row of a window that lie inside the image.
  Range taps_inside(int64_t column) const {
    return inside(from.left + column * from.stride_w, from.column_step, from.columns, from.width);
  }

  /// The first channels of a row of windows, at the image's first column; meet() goes on to a window.
  LaneWindows first_of_row(int64_t row, const Pointers& p) const {
    const int64_t image = row / from.out_height, of_image = row % from.out_height;
    const int64_t top = from.top + of_image * from.stride_h;
    Range down = inside(top, from.row_step, from.rows, from.height);
    if (down.size() == 0) down = {0, 0};
    const int64_t first_row = down.size() > 0 ? image * from.height + top + down.begin * from.row_step : 0;
    return {.x = p.x + first_row * from.width * from.pixel,
            .w = p.w + w_first + down.begin * w_row,
            .y = p.y + at + image * places.group_step + of_image * places.run_step,
            .bias = p.bias,
            .rows = down.size(),
            .columns = 0,
            .x_row = from.row_step * from.width * from.pixel,
            .x_column = from.column_step * from.pixel,
            .w_row = w_row,
            .w_column = w_column,
            .x_step = from.stride_w * from.pixel,
            .y_step = places.step,
            .w_vector = 0,
            .relu = false};
  }
  /// From the first window of a row to this one, which meets these columns of its taps.
  void meet(LaneWindows& window, int64_t column, Range taps) const {
    window.y += column * places.step;
    window.columns = taps.size();
    if (taps.size() == 0) return;
    window.x += (from.left + column * from.stride_w + taps.begin * from.column_step) * from.pixel;
    window.w += taps.begin * w_column;
  }
};

/// A convolution whose weights lie by taps, `of_tap` floats each of a vector.
struct LaneConv : ConvTensors {
  bool is_of_f32_in_nhwc() const {
    const bool is_f32 = x.dtype == DType::kF32 && w.dtype == DType::kF32;
    return is_f32 && x.layout == Layout::kNhwc && y.layout == Layout::kNhwc && !is_empty();
  }
  int64_t taps() const { return w.shape[2] * w.shape[3]; }
  bool relu() const { return params.activation == Activation::kRelu; }
  ImageWindows windows() const { return windows_of(x.shape, w.shape, y.shape, params); }

  /// Threads that are worth waking: fewer products than kGrainProducts take less time than that.
  int team(int threads) const {
    constexpr int64_t kGrainProducts = int64_t{64} << 10;
    const int64_t products = y.numel() * w.shape[1] * taps();
    return static_cast<int>(std::clamp<int64_t>(products / kGrainProducts, 1, threads));
  }

  LaneRows rows_of_y(int64_t of_tap) const {
    const int64_t channels = y.shape[1], width = y.shape[3];
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
  LaneRows rows_of(const InputPhase& phase, int64_t of_tap) const {
    const std::vector<int64_t>& its_taps = phase.taps;
    const auto columns = static_cast<size_t>(phase.windows.columns);
    return {.from = phase.windows,
            .images = x.shape[0],
            .w_first = its_taps[0] * of_tap,
            .w_row = its_taps.size() > columns ? (its_taps[columns] - its_taps[0]) * of_tap : 0,
            .w_column = columns > 1 ? (its_taps[1] - its_taps[0]) * of_tap : 0,
            .at = phase.at,
            .places = phase.places};
  }
};

/// Weights by vectors as a pack with this name: `weights`, its key, has the `vectors` and writes one by put_vector(w,
/// to, i).
template <class Weights>
Layout pack_by_vectors(const Weights& weights, const char* name, const char* kernel_name) {
  const auto make = [weights, kernel_name](const TensorSpec&) {
    return make_kernel(kernel_name, [weights](const Launch& l) {
      const auto* w = static_cast<const float*>(l.in[0]);
      auto* to = static_cast<float*>(l.out[0]);
      const int64_t floats = weights.vectors.of_vector();
      parallel_for(weights.vectors.count(), kGrainBytes / (4 * floats), [&](int64_t begin, int64_t end) {
        for (int64_t vector = begin; vector < end; ++vector) weights.put_vector(w, to + vector * floats, vector);
      });
    });
  };
  return register_pack(weights, {name, static_cast<size_t>(weights.vectors.floats()) * sizeof(float), make});
}

/// A kernel of passes over rows of windows. `zeros` of y's elements are zeros before them; their rows are shared out
/// among threads pass by pass: a row of one takes longer than that of another.
template <class Pass>
std::unique_ptr<Kernel> kernel_of_passes(const char* name, std::vector<Pass> passes, int64_t zeros, bool has_bias,
                                         int team) {
  return make_kernel(name, [=, passes = std::move(passes)](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    auto* y = static_cast<float*>(l.out[0]);
    if (zeros) put_zeros(y, zeros);
    const LaneRows::Pointers p{in(0), in(1), y, has_bias ? in(2) : nullptr};
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

/// Of y, or of the phases of dx. make_pass(rows, relu) is a Pass.
template <class MakePass>
std::unique_ptr<Kernel> kernel_of_lanes(const char* name, const LaneConv& c, bool is_forward, int64_t of_tap,
                                        int threads, const MakePass& make_pass) {
  std::vector<decltype(make_pass(LaneRows(), false))> passes;
  if (is_forward) {
    passes.push_back(make_pass(c.rows_of_y(of_tap), c.relu()));
    return kernel_of_passes(name, std::move(passes), 0, c.has_bias, c.team(threads));
  }
  const InputPhases phases = input_phases(c.x.shape, c.w.shape, c.y.shape, c.params);
  for (const InputPhase& phase : phases.all) passes.push_back(make_pass(c.rows_of(phase, of_tap), false));
  return kernel_of_passes(name, std::move(passes), phases.leave_pixels_out ? c.x.numel() : 0, false, c.team(threads));
}

}  // namespace plumb::cpu
