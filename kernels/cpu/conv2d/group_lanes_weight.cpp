#include "kernels/cpu/conv2d/group_lanes_weight.h"

#include <array>
#include <span>

#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// Taps below one another of some neighbouring vectors, over columns of a row of dy whose windows have them inside the
// image. Distances are in floats.
struct Block {
  const float *dy, *x;
  int64_t columns;
  int64_t dy_step, x_step;  // from column to column
  int64_t x_tap, sums_tap;  // from tap to tap
  int64_t sums_vector;      // from vector to vector
  float* sums;              // by lanes: a lane is an input
};

template <int kOfGroup, int kTaps, int kVectors>
void add_products(const Block& b) {
  Vec sums[kVectors][kTaps][kOfGroup] = {};
  const float *dy = b.dy, *x = b.x;
  for (int64_t i = 0; i < b.columns; ++i, dy += b.dy_step, x += b.x_step) {
#pragma GCC unroll 24
    for (int v = 0; v < kVectors; ++v) {
      const Vec outputs = simd::load(dy + v * kLanes);
      [&]<int... r>(std::integer_sequence<int, r...>) {
        const auto add = [&](int order, Vec beside) {
#pragma GCC unroll 24
          for (int t = 0; t < kTaps; ++t) sums[v][t][order] += simd::load(x + t * b.x_tap + v * kLanes) * beside;
        };
        (add(r, simd::exchanged<r>(outputs)), ...);
      }
      (std::make_integer_sequence<int, kOfGroup>());
    }
  }
#pragma GCC unroll 24
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 24
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 16
      for (int r = 0; r < kOfGroup; ++r) {
        float* to = b.sums + v * b.sums_vector + t * b.sums_tap + r * kLanes;
        simd::store(to, simd::load(to) + sums[v][t][r]);
      }
    }
  }
}

using AddProducts = void (*)(const Block&);
template <int kOfGroup>
constexpr int kMostTaps = std::clamp(kLaneSums / kOfGroup, 1, 8);
template <int kOfGroup, int kTaps>
constexpr int kMostVectors = std::max(1, kLaneSums / (kOfGroup * kTaps));

// For a number of taps: the kernels for one vector and for as many as there are registers for.
struct OfTaps {
  AddProducts one, some;
  int64_t vectors;
};
template <int kOfGroup, int... n>
constexpr auto of_taps(std::integer_sequence<int, n...>) {
  return std::array<OfTaps, sizeof...(n)>{OfTaps{&add_products<kOfGroup, n + 1, 1>,
                                                 &add_products<kOfGroup, n + 1, kMostVectors<kOfGroup, n + 1>>,
                                                 kMostVectors<kOfGroup, n + 1>}...};
}
template <int kOfGroup>
constexpr auto kOfTaps = of_taps<kOfGroup>(std::make_integer_sequence<int, kMostTaps<kOfGroup>>());

struct Gradient {
  LaneVectors lanes;
  ImageWindows windows;
  std::span<const OfTaps> of_taps;  // by their number - 1

  // Adds the products of one row of dy with the taps of one column of the windows.
  void add_column(const float* dy, const float* x, float* sums, int64_t row, int64_t column) const {
    const ImageWindows& w = windows;
    const int64_t image = row / w.out_height, top = w.top + row % w.out_height * w.stride_h,
                  left = w.left + column * w.column_step;
    const Range columns = inside(left, w.stride_w, w.out_width, w.width),
                down = inside(top, w.row_step, w.rows, w.height);
    if (columns.size() == 0 || down.size() == 0) return;

    const int64_t pieces = ceil_div(down.size(), static_cast<int64_t>(of_taps.size()));
    for (int64_t i = 0; i < pieces; ++i) {
      const Range of_piece = piece(down.size(), i, pieces),
                  taps{down.begin + of_piece.begin, down.begin + of_piece.end};
      const int64_t at =
          (image * w.height + top + taps.begin * w.row_step) * w.width + left + columns.begin * w.stride_w;
      Block b{.dy = nullptr,
              .x = nullptr,
              .columns = columns.size(),
              .dy_step = lanes.channels,
              .x_step = w.stride_w * w.pixel,
              .x_tap = w.row_step * w.width * w.pixel,
              .sums_tap = w.columns * lanes.of_tap(),
              .sums_vector = lanes.of_vector(),
              .sums = nullptr};
      const auto add = [&](AddProducts products, int64_t vector) {
        const int64_t channel = lanes.first_channel(vector);
        b.dy = dy + (row * w.out_width + columns.begin) * lanes.channels + channel;
        b.x = x + at * w.pixel + channel;
        b.sums = sums + vector * lanes.of_vector() + (taps.begin * w.columns + column) * lanes.of_tap();
        products(b);
      };
      const OfTaps& kernels = of_taps[static_cast<size_t>(taps.size() - 1)];
      int64_t vector = 0;
      for (; vector + kernels.vectors <= lanes.full(); vector += kernels.vectors) add(kernels.some, vector);
      for (; vector < lanes.count(); ++vector) add(kernels.one, vector);
    }
  }

  // The sums of so many threads, which lie one behind the other, in the order of w.
  void put(const float* sums, int64_t threads, float* dw, int64_t vector) const {
    for (int64_t tap = 0; tap < lanes.taps; ++tap) {
      const float* of_tap = sums + vector * lanes.of_vector() + tap * lanes.of_tap();
      lanes.each_pair(vector, [&](int64_t place, int64_t input, int64_t output) {
        if (output < vector * kLanes) return;  // the vector before has it
        float sum = 0;
        for (int64_t t = 0; t < threads; ++t) sum += of_tap[t * lanes.floats() + place];
        dw[(output * lanes.of_group + input % lanes.of_group) * lanes.taps + tap] = sum;
      });
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> group_lanes_backward_weight(const LaneVectors& lanes, const ImageWindows& windows,
                                                    int64_t images, int most_threads) {
  const Gradient gradient{
      lanes, windows,
      with_lanes_of_group(lanes.of_group, []<int kOfGroup>() -> std::span<const OfTaps> { return kOfTaps<kOfGroup>; })};
  const int64_t rows = images * windows.out_height;
  const int team = static_cast<int>(std::min<int64_t>(most_threads, rows));
  auto kernel = make_kernel("plumb:group_lanes", [=](const Launch& l) {
    const auto *dy = static_cast<const float*>(l.in[0]), *x = static_cast<const float*>(l.in[1]);
    auto *sums = static_cast<float*>(l.workspace), *dw = static_cast<float*>(l.out[0]);
    parallel_team(team, [&](int t, int) {
      float* mine = sums + t * lanes.floats();
      std::fill_n(mine, lanes.floats(), 0.0f);
      const Range of_thread = piece(rows, t, team);
      for (int64_t row = of_thread.begin; row < of_thread.end; ++row) {
        for (int64_t column = 0; column < windows.columns; ++column) {
          gradient.add_column(dy, x, mine, row, column);
        }
      }
    });
    parallel_for(lanes.count(), kGrainBytes / (4 * lanes.of_vector()), [&](int64_t begin, int64_t end) {
      for (int64_t vector = begin; vector < end; ++vector) gradient.put(sums, team, dw, vector);
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(team * lanes.floats()) * sizeof(float);
  return kernel;
}

}  // namespace plumb::cpu
