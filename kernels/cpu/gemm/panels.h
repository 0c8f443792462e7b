// Operands of a product, packed into panels.
#pragma once

#include <algorithm>

#include "kernels/cpu/gemm/packed_product.h"
#include "kernels/cpu/movement/transpose_tiles.h"

namespace plumb::cpu {

/// An operand: the element at depth i of line j (a row of a, a column of b) is at[i * depth_step + j * line_step]. One
/// of the steps is 1.
struct Operand {
  const float* at;
  int64_t depth_step, line_step;
};

/// Packs lines at a range of depths. A panel has W lines, those of one depth side by side, and zeros for lines that do
/// not exist.
template <int W>
class PanelPacker {
 public:
  /// Of an operand with so many lines. From panel to panel are so many depths, or those that are packed.
  PanelPacker(const Operand& x, Range depths, int64_t lines, int64_t panel_depths = 0)
      : x_(x), depths_(depths), lines_(lines), panel_(W * (panel_depths ? panel_depths : depths.size())) {}

  /// Packs lines from `lines.begin`, a panel behind the other, and prefetches what follows.
  void pack(float* to, Range lines) const {
    const float* from = x_.at + lines.begin * x_.line_step + depths_.begin * x_.depth_step;
    x_.line_step == 1 ? copy(to, from, lines) : transpose(to, from, lines);
  }

 private:
  using Vec = simd::Vec;
  static constexpr int64_t kLanes = simd::kLanes;
  static constexpr int kParts = static_cast<int>(simd::vectors_of(W));

  // All panels go along together, so that memory is read in longer runs.
  void copy(float* to, const float* from, Range lines) const {
    for (int64_t i = 0; i < depths_.size(); ++i, from += x_.depth_step) {
      for (int64_t at = 0; at < lines.size(); at += W) {
        const int64_t exist = lines_ - lines.begin - at;
        Vec row[kParts];
        for (int v = 0; v < kParts; ++v) {
          const float* part = from + at + v * kLanes;
          row[v] = exist >= kParts * kLanes
                       ? simd::load(part)
                       : simd::load(part, std::clamp<int64_t>(std::min<int64_t>(exist, W) - v * kLanes, 0, kLanes));
          simd::fetch<2>(part, lines.size() * 4);
        }
        store_row(to + at / W * panel_, i, row);
      }
    }
  }
  void transpose(float* to, const float* from, Range lines) const {
    for (int64_t at = 0; at < lines.size(); at += W, to += panel_, from += W * x_.line_step) {
      transpose_panel(to, from, std::min<int64_t>(W, lines_ - lines.begin - at));
    }
  }
  void transpose_panel(float* to, const float* from, int64_t lines) const {
    for (int64_t i = 0; i < depths_.size(); i += kLanes, from += kLanes) {
      const int64_t n = std::min(kLanes, depths_.size() - i);
      tiles::TileRow<uint32_t> tile[kParts][kLanes] = {};
#pragma GCC unroll 4
      for (int v = 0; v < kParts; ++v) {
#pragma GCC unroll 16
        for (int64_t j = 0; j < kLanes; ++j) {
          if (v * kLanes + j >= lines) break;
          const float* line = from + (v * kLanes + j) * x_.line_step;
          tile[v][j] = std::bit_cast<tiles::TileRow<uint32_t>>(n == kLanes ? simd::load(line) : simd::load(line, n));
          simd::fetch<2>(line, W * x_.line_step * 4);
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

  Operand x_;
  Range depths_;
  int64_t lines_, panel_;
};

/// A matrix as it stands.
template <int W>
class MatrixPanels final : public PanelSource {
 public:
  MatrixPanels(const Operand& x, int64_t lines) : x_(x), lines_(lines) {}
  void pack(float* to, Range lines, Range depths) const override { PanelPacker<W>(x_, depths, lines_).pack(to, lines); }

 private:
  Operand x_;
  int64_t lines_;
};

}  // namespace plumb::cpu
