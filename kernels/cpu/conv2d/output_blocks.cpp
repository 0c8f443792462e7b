#include "kernels/cpu/conv2d/output_blocks.h"

#include <array>

#include "kernels/cpu/conv2d/lanes.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// kShares: the vectors meet the same inputs.
template <int kColumns, int kVectors, bool kShares>
void convolve(const OutputWindows& b) {
  Vec sums[kVectors][kColumns] = {};
  for (int64_t i = 0; i < b.rows; ++i) {
    const float *x = b.x + i * b.x_row, *w = b.w + i * b.w_row;
    for (int64_t j = 0; j < b.columns; ++j, x += b.x_column, w += b.w_column) {
      const float* weight = w;
      for (int64_t input = 0; input < b.inputs; ++input, weight += kLanes) {
        Vec weights[kVectors];
#pragma GCC unroll 24
        for (int v = 0; v < kVectors; ++v) weights[v] = simd::load(weight + v * b.w_vector);
#pragma GCC unroll 24
        for (int c = 0; c < kColumns; ++c) {
          if constexpr (kShares) {
            const Vec value = simd::broadcast(x + c * b.x_step + input);
#pragma GCC unroll 24
            for (int v = 0; v < kVectors; ++v) sums[v][c] += value * weights[v];
          } else {
#pragma GCC unroll 24
            for (int v = 0; v < kVectors; ++v) {
              sums[v][c] += simd::broadcast(x + c * b.x_step + v * b.x_vector + input) * weights[v];
            }
          }
        }
      }
    }
  }
#pragma GCC unroll 24
  for (int v = 0; v < kVectors; ++v) {
    const Vec bias = b.bias ? simd::load(b.bias + v * b.y_vector, b.lanes) : Vec{};
#pragma GCC unroll 24
    for (int c = 0; c < kColumns; ++c) {
      const Vec y = sums[v][c] + bias;
      simd::store(b.y + c * b.y_step + v * b.y_vector, b.relu ? simd::relu(y) : y, b.lanes);
    }
  }
}

template <int kColumns, int kVectors>
void convolve_beside(OutputWindows& at, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i, at.skip_columns(kColumns)) convolve<kColumns, kVectors, true>(at);
}
template <int kVectors>
void convolve_vectors(OutputWindows& at, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i, at.skip_vectors(kVectors)) convolve<1, kVectors, false>(at);
}

using Block = ConvolveBlocksOf<OutputWindows>;
template <int kVectors, int... n>
constexpr std::array<Block, sizeof...(n)> besides(std::integer_sequence<int, n...>) {
  return {&convolve_beside<n + 1, kVectors>...};
}
template <int... n>
constexpr std::array<Block, sizeof...(n)> all_vectors(std::integer_sequence<int, n...>) {
  return {&convolve_vectors<n + 1>...};
}
constexpr auto kBeside = besides<1>(std::make_integer_sequence<int, kLaneSums>());
constexpr auto kBesidePairs = besides<2>(std::make_integer_sequence<int, kLaneSums / 2>());
constexpr auto kVectors = all_vectors(std::make_integer_sequence<int, kLaneSums / 2>());

}  // namespace

OutputBlocks output_blocks() { return {kBeside, kBesidePairs, kVectors}; }

}  // namespace plumb::cpu
