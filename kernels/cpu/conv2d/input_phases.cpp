#include "kernels/cpu/conv2d/input_phases.h"

#include <algorithm>

namespace plumb::cpu {
namespace {

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

InputPhase both(const Shape& x, const Shape& w, const Shape& y, const Conv2dParams& p, const Phase& down,
                const Phase& along) {
  InputPhase phase{.windows = {.height = y[2],
                               .width = y[3],
                               .pixel = y[1],
                               .channels = y[1] / p.groups,
                               .out_height = down.count,
                               .out_width = along.count,
                               .top = down.first,
                               .left = along.first,
                               .stride_h = 1,
                               .stride_w = 1,
                               .rows = static_cast<int64_t>(down.taps.size()),
                               .columns = static_cast<int64_t>(along.taps.size()),
                               .row_step = down.step,
                               .column_step = along.step},
                   .taps = {},
                   .at = (down.phase * x[3] + along.phase) * x[1],
                   .places = {.step = p.stride[1] * x[1],
                              .in_run = along.count,
                              .run_step = p.stride[0] * x[3] * x[1],
                              .runs = down.count,
                              .group_step = x[2] * x[3] * x[1]}};
  for (const int64_t row : down.taps) {
    for (const int64_t column : along.taps) phase.taps.push_back(row * w[3] + column);
  }
  return phase;
}

}  // namespace

InputPhases input_phases(const Shape& x, const Shape& w, const Shape& y, const Conv2dParams& p) {
  InputPhases phases;
  for (int64_t i = 0; i < std::min<int64_t>(p.stride[0], x[2]); ++i) {
    const Phase down(i, x[2], w[2], p.stride[0], p.dilation[0], p.padding[0]);
    for (int64_t j = 0; j < std::min<int64_t>(p.stride[1], x[3]); ++j) {
      const Phase along(j, x[3], w[3], p.stride[1], p.dilation[1], p.padding[2]);
      if (down.taps.empty() || along.taps.empty()) {
        phases.leave_pixels_out = true;
      } else {
        phases.all.push_back(both(x, w, y, p, down, along));
      }
    }
  }
  return phases;
}

}  // namespace plumb::cpu
