#include "kernels/cpu/conv2d/winograd_multiply.h"

#include <array>
#include <utility>

namespace plumb::cpu::winograd {
namespace {

using Block = void (*)(int64_t depth, const float* a, int64_t stride, const float* b, float* c, bool accumulate);

template <Left left, int kRows, int kWidth>
void block(int64_t depth, const float* a, int64_t stride, const float* b, float* c, bool accumulate) {
  Vec sum[kRows][kWidth];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v) sum[r][v] = Vec{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vec row[kWidth];
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v) row[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec element = (left == Left::kByRow ? a[r * stride] : a[r]) - Vec{};
#pragma GCC unroll 2
      for (int v = 0; v < kWidth; ++v) sum[r][v] += element * row[v];
    }
    a += left == Left::kByRow ? 1 : stride;
    b += kWidth * kLanes;
  }
  // What was there comes last: a sum that went on would lose the digits of each term.
  if (accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kWidth; ++v) sum[r][v] += load(c + (r * kWidth + v) * kLanes);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v) store(c + (r * kWidth + v) * kLanes, sum[r][v]);
  }
}

template <Left left, int kWidth, int... rows>
constexpr std::array<Block, sizeof...(rows)> blocks_of(std::integer_sequence<int, rows...>) {
  return {&block<left, rows + 1, kWidth>...};
}
// Indexed by the number of rows - 1.
template <Left left, int kWidth>
constexpr auto kBlocks = blocks_of<left, kWidth>(std::make_integer_sequence<int, kBlockRows>());

}  // namespace

template <Left left>
void multiply_panel(int64_t rows, int64_t depth, int64_t width, const float* a, int64_t stride, const float* b,
                    float* c, bool accumulate) {
  const auto& blocks = width == 1 ? kBlocks<left, 1> : kBlocks<left, kPanelVectors>;
  const int64_t groups = ceil_div(rows, kBlockRows);
  for (int64_t g = 0, begin = 0; g < groups; ++g) {
    const int64_t end = rows * (g + 1) / groups;  // groups of nearly equal size, so that none has only a row or two
    blocks[static_cast<size_t>(end - begin - 1)](depth, a + begin * (left == Left::kByRow ? stride : 1), stride, b,
                                                 c + begin * width * kLanes, accumulate);
    begin = end;
  }
}

template void multiply_panel<Left::kByRow>(int64_t, int64_t, int64_t, const float*, int64_t, const float*, float*,
                                           bool);
template void multiply_panel<Left::kByColumn>(int64_t, int64_t, int64_t, const float*, int64_t, const float*, float*,
                                              bool);

}  // namespace plumb::cpu::winograd
