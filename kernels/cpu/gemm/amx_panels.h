// Operands of a product in bf16, packed into the panels of AMX (amx_block.h).
#pragma once

#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/panels.h"

namespace plumb::cpu {

/// Panels of so many depths, in words.
class AmxPanels {
 public:
  AmxPanels(float* at, int64_t depths) : at_(at), panel_(kAmxRows * ceil_div(depths, kAmxDepth) * kAmxDepth) {}
  /// The place of kAmxDepth words of a line, counted from the first panel's; `depth` is a multiple of theirs.
  float* words(int64_t line, int64_t depth) const {
    return at_ + line / kAmxRows * panel_ + depth * kAmxRows + line % kAmxRows * kAmxDepth;
  }

 private:
  float* at_;
  int64_t panel_;
};

/// A matrix as it stands, as a's rows.
class AmxRows final : public PanelSource {
 public:
  using Element = Bfloat16;
  static constexpr ProductForm kForm{kAmxRows, kAmxDepth, false};

  AmxRows(const Operand<Bfloat16>& x, int64_t lines) : x_(x), lines_(lines), matrix_(x, lines) {}

  void pack(float* to, Range lines, Range depths) const override {
    const AmxPanels panels(to, depths.size());
    x_.line_step == 1 ? transpose(panels, lines, depths) : copy(panels, lines, depths);
  }
  RowsAhead ahead(Range lines, Range depths) const override { return matrix_.ahead(lines, depths); }
  void multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const override {
    multiply_amx_panel(depth, lines, b, to);
  }

 private:
  using Vec = simd::Vec;
  static constexpr int64_t kLanes = simd::kLanes;

  // Lines behind the last are left as they are: their products go nowhere.
  void copy(const AmxPanels& to, Range lines, Range depths) const {
    for (int64_t line = lines.begin; line < std::min(lines.end, lines_); ++line) {
      for (int64_t d = depths.begin; d < depths.end; d += kAmxDepth) {
        float* const words = to.words(line - lines.begin, d - depths.begin);
        for (int64_t v = 0; v < kAmxDepth; v += kLanes) {
          const int64_t n = std::clamp<int64_t>(depths.end - d - v, 0, kLanes);
          simd::store(words + v, n > 0 ? x_.of_depths(x_.word(line, d + v), d + v, n) : Vec{});
        }
      }
    }
  }
  // All panels go along together, so that memory is read in longer runs.
  void transpose(const AmxPanels& to, Range lines, Range depths) const {
    for (int64_t d = depths.begin; d < ceil_div(depths.size(), kAmxDepth) * kAmxDepth + depths.begin; d += kLanes) {
      const int64_t n = std::clamp<int64_t>(depths.end - d, 0, kLanes);
      for (int64_t line = lines.begin; line < lines.end; line += kLanes) {
        const int64_t exist = std::clamp<int64_t>(lines_ - line, 0, kLanes);
        tiles::TileRow<uint32_t> tile[kLanes] = {};
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i) {
          if (i >= n) break;
          const Bfloat16* from = x_.word(line, d + i);
          tile[i] = std::bit_cast<tiles::TileRow<uint32_t>>(x_.of_lines(from, d + i, exist));
        }
        tiles::transpose_blocks<uint32_t, kLanes / 2>(tile);
        const int64_t at = d - depths.begin;
        float* const words = to.words(line - lines.begin, at / kAmxDepth * kAmxDepth) + at % kAmxDepth;
#pragma GCC unroll 16
        for (int64_t j = 0; j < kLanes; ++j) simd::store(words + j * kAmxDepth, std::bit_cast<Vec>(tile[j]));
      }
    }
  }

  Operand<Bfloat16> x_;
  int64_t lines_;
  MatrixPanels<kBlockColumns, Bfloat16> matrix_;
};

/// The name of a product with such rows of a.
template <class Rows>
std::string product_name(const char* name) {
  return std::string(name) + (Rows::kForm.rows == kAmxRows ? ":amx" : "");
}

/// make.operator()<Rows>() for the rows of a in panels for elements of this dtype, if there are products of such.
template <class Make>
auto dispatch_rows(DType dtype, const Make& make) {
  if (dtype == DType::kBf16 && has_amx()) return make.template operator()<AmxRows>();
  return dispatch_words(dtype, [&]<class T>() { return make.template operator()<MatrixPanels<kBlockRows, T>>(); });
}

}  // namespace plumb::cpu
