#include "kernels/cpu/conv2d/lane_blocks.h"

#include <array>

#include "kernels/cpu/conv2d/lanes.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// Adds the products of n vectors, each with m: those of the fewer stay in registers.
template <int n, int m, class Few, class Many, class Sum>
[[gnu::always_inline]] inline void multiply(const Few& few, const Many& many, const Sum& sum) {
  Vec kept[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) kept[i] = few(i);
#pragma GCC unroll 24
  for (int j = 0; j < m; ++j) {
    const Vec other = many(j);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) sum(i, j) += kept[i] * other;
  }
}

template <int kOfGroup, int kColumns, int kVectors>
void convolve(const LaneWindows& b) {
  Vec sums[kVectors][kColumns][kOfGroup] = {};
  for (int64_t i = 0; i < b.rows; ++i) {
    const float *x = b.x + i * b.x_row, *w = b.w + i * b.w_row;
    for (int64_t j = 0; j < b.columns; ++j, x += b.x_column, w += b.w_column) {
#pragma GCC unroll 24
      for (int v = 0; v < kVectors; ++v) {
        const auto input = [&](int c) { return simd::load(x + c * b.x_step + v * kLanes); };
        const auto weight = [&](int r) { return simd::load(w + v * b.w_vector + r * kLanes); };
        if constexpr (kColumns < kOfGroup) {
          multiply<kColumns, kOfGroup>(input, weight, [&](int c, int r) -> Vec& { return sums[v][c][r]; });
        } else {
          multiply<kOfGroup, kColumns>(weight, input, [&](int r, int c) -> Vec& { return sums[v][c][r]; });
        }
      }
    }
  }
#pragma GCC unroll 24
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 24
    for (int c = 0; c < kColumns; ++c) {
      Vec y = b.bias ? simd::load(b.bias + v * kLanes) : Vec{};
      [&]<int... r>(std::integer_sequence<int, r...>) { ((y += simd::exchanged<r>(sums[v][c][r])), ...); }
      (std::make_integer_sequence<int, kOfGroup>());
      simd::store(b.y + c * b.y_step + v * kLanes, b.relu ? simd::relu(y) : y);
    }
  }
}

template <int kOfGroup, int kColumns>
void convolve_beside(LaneWindows& at, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i, at.skip_columns(kColumns)) convolve<kOfGroup, kColumns, 1>(at);
}
template <int kOfGroup, int kColumns>
void convolve_across(LaneWindows& at, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i, at.skip_vectors(1)) convolve<kOfGroup, kColumns, 1>(at);
}
template <int kOfGroup, int kVectors>
void convolve_vectors(LaneWindows& at, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i, at.skip_vectors(kVectors)) convolve<kOfGroup, 1, kVectors>(at);
}

template <int kOfGroup>
struct Tables {
  static constexpr int kMost = std::max(1, kLaneSums / kOfGroup);
  using Table = std::array<ConvolveBlocks, kMost>;
  Table beside, across, vectors;
  template <int... n>
  constexpr explicit Tables(std::integer_sequence<int, n...>)
      : beside{&convolve_beside<kOfGroup, n + 1>...},
        across{&convolve_across<kOfGroup, n + 1>...},
        vectors{&convolve_vectors<kOfGroup, n + 1>...} {}
};
template <int kOfGroup>
constexpr Tables<kOfGroup> kTables(std::make_integer_sequence<int, Tables<kOfGroup>::kMost>{});

}  // namespace

LaneBlocks lane_blocks(int64_t of_group) {
  return with_lanes_of_group(of_group, []<int kOfGroup>() {
    return LaneBlocks{kTables<kOfGroup>.beside, kTables<kOfGroup>.across, kTables<kOfGroup>.vectors};
  });
}

}  // namespace plumb::cpu
