// Operands of a product, packed into panels.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/gemm/packed_product.h"
#include "kernels/cpu/movement/transpose_tiles.h"

namespace plumb::cpu {

/// Words of bf16: of each lane the first element and the second.
inline simd::Vec pairs_of(simd::bytes::U16 first, simd::bytes::U16 second) {
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return std::bit_cast<simd::Vec>(__builtin_shufflevector(first, second, (i % 2 * simd::kLanes + i / 2)...));
  }
  (std::make_integer_sequence<int, 2 * simd::kLanes>());
}

/// An operand of elements T: the one at depth i of line j (a row of a, a column of b) is at[i * depth_step + j *
/// line_step]. One of the steps is 1.
template <class T>
struct Operand {
  const T* at;
  int64_t depth_step, line_step;
  /// Of a line. In bf16 an odd number leaves half of the last word empty.
  int64_t depths = std::numeric_limits<int64_t>::max();

  /// Where the word at this depth of this line begins. Depths are counted in words.
  const T* word(int64_t line, int64_t depth) const { return at + line * line_step + depth * kInWord<T> * depth_step; }
  /// The words at a depth of n lines that are neighbours, the first of them at `from`.
  simd::Vec of_lines(const T* from, int64_t depth, int64_t n) const {
    if constexpr (kInWord<T> == 1) {
      return n >= simd::kLanes ? simd::load(from) : simd::load(from, n);
    } else {
      const bool has_second = depth * 2 + 1 < depths;
      return pairs_of(simd::bytes::load<simd::bytes::U16>(from, n),
                      has_second ? simd::bytes::load<simd::bytes::U16>(from + depth_step, n) : simd::bytes::U16{});
    }
  }
  /// The n words of a line from a depth on, which are neighbours, the first of them at `from`.
  simd::Vec of_depths(const T* from, int64_t depth, int64_t n) const {
    if constexpr (kInWord<T> == 2) {
      if (const int64_t rest = depths - depth * 2; rest < 2 * n) {  // the last word is half of one
        uint32_t words[simd::kLanes] = {};
        std::memcpy(words, from, static_cast<size_t>(rest) * sizeof(T));
        return plumb::detail::load_bytes<simd::Vec>(words);
      }
    }
    if (n == simd::kLanes) return plumb::detail::load_bytes<simd::Vec>(from);
    return std::bit_cast<simd::Vec>(simd::bytes::load<simd::bytes::U32>(from, n));
  }
};

/// Packs lines at a range of depths, which are counted in words (packed_block.h). A panel has W lines, those of one
/// depth side by side, and zeros for lines that do not exist.
template <int W, class T = float>
class PanelPacker {
 public:
  /// Of an operand with so many lines. From panel to panel are so many depths, or those that are packed.
  PanelPacker(const Operand<T>& x, Range depths, int64_t lines, int64_t panel_depths = 0)
      : x_(x), depths_(depths), lines_(lines), panel_(W * (panel_depths ? panel_depths : depths.size())) {}

  /// Packs lines from `lines.begin`, a panel behind the other, and prefetches what follows.
  void pack(float* to, Range lines) const {
    const T* from = x_.word(lines.begin, depths_.begin);
    x_.line_step == 1 ? copy(to, from, lines) : transpose(to, from, lines);
  }

 private:
  using Vec = simd::Vec;
  static constexpr int64_t kLanes = simd::kLanes, kDepths = kInWord<T>;
  static constexpr int kParts = static_cast<int>(simd::vectors_of(W));

  // All panels go along together, so that memory is read in longer runs.
  void copy(float* to, const T* from, Range lines) const {
    for (int64_t i = 0; i < depths_.size(); ++i, from += kDepths * x_.depth_step) {
      for (int64_t at = 0; at < lines.size(); at += W) {
        const int64_t exist = lines_ - lines.begin - at;
        Vec row[kParts];
        for (int v = 0; v < kParts; ++v) {
          const T* part = from + at + v * kLanes;
          const int64_t all = exist >= kParts * kLanes ? kLanes : std::min<int64_t>(exist, W) - v * kLanes;
          row[v] = x_.of_lines(part, depths_.begin + i, std::clamp<int64_t>(all, 0, kLanes));
          simd::fetch<2>(part, lines.size() * static_cast<int64_t>(sizeof(T)));
        }
        store_row(to + at / W * panel_, i, row);
      }
    }
  }
  void transpose(float* to, const T* from, Range lines) const {
    for (int64_t at = 0; at < lines.size(); at += W, to += panel_, from += W * x_.line_step) {
      transpose_panel(to, from, std::min<int64_t>(W, lines_ - lines.begin - at));
    }
  }
  void transpose_panel(float* to, const T* from, int64_t lines) const {
    for (int64_t i = 0; i < depths_.size(); i += kLanes, from += kLanes * kDepths) {
      const int64_t n = std::min(kLanes, depths_.size() - i);
      tiles::TileRow<uint32_t> tile[kParts][kLanes] = {};
#pragma GCC unroll 4
      for (int v = 0; v < kParts; ++v) {
#pragma GCC unroll 16
        for (int64_t j = 0; j < kLanes; ++j) {
          if (v * kLanes + j >= lines) break;
          const T* line = from + (v * kLanes + j) * x_.line_step;
          tile[v][j] = std::bit_cast<tiles::TileRow<uint32_t>>(x_.of_depths(line, depths_.begin + i, n));
          simd::fetch<2>(line, W * x_.line_step * static_cast<int64_t>(sizeof(T)));
        }
        tiles::transpose_blocks<uint32_t, kLanes / 2>(tile[v]);
      }
      for (int64_t j = 0; j < n; ++j) {
        Vec row[kParts];
        for (int v = 0; v < kParts; ++v) row[v] = std::bit_cast<Vec>(tile[v][j]);
        store_row(to, i + j, row);
      }
    }
  }
  // Stores whole vectors, whose rest the next row overwrites; the last row has none.
  void store_row(float* to, int64_t i, const Vec* row) const {
    for (int v = 0; v < kParts; ++v) {
      float* p = to + i * W + v * kLanes;
      const bool whole = (v + 1) * kLanes <= W || i + 1 < depths_.size();
      whole ? simd::store(p, row[v]) : simd::store(p, row[v], W - v * kLanes);
    }
  }

  Operand<T> x_;
  Range depths_;
  int64_t lines_, panel_;
};

/// A matrix as it stands.
template <int W, class T = float>
class MatrixPanels final : public PanelSource {
 public:
  using Element = T;
  static constexpr ProductForm kForm{W, 1, kInWord<T> == 1};  ///< with this as a

  MatrixPanels(const Operand<T>& x, int64_t lines) : x_(x), lines_(lines) {}
  void pack(float* to, Range lines, Range depths) const override {
    PanelPacker<W, T>(x_, depths, lines_).pack(to, lines);
  }
  RowsAhead ahead(Range lines, Range depths) const override {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    const Range elements{depths.begin * kInWord<T>, std::min(depths.end * kInWord<T>, x_.depths)};
    const T* first = x_.at + lines.begin * x_.line_step + elements.begin * x_.depth_step;
    return x_.line_step == 1 ? RowsAhead(first, elements.size(), lines.size() * kBytes, x_.depth_step * kBytes)
                             : RowsAhead(first, lines.size(), elements.size() * kBytes, x_.line_step * kBytes);
  }
  void multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const override {
    if constexpr (kMultiplies<T>) multiply_panel<T>(depth, lines, b, to);
  }

 private:
  Operand<T> x_;
  int64_t lines_;
};

}  // namespace plumb::cpu
