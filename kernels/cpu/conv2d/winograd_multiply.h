// Products of small matrices for the Winograd kernels, with operands stored in panels.
//
// A panel is up to kPanel columns of a matrix, stored row by row without gaps; panels stand one behind the other. The
// inner loop then reads consecutive memory only, and columns are padded with zeros to whole vectors.
#pragma once

#include <algorithm>

#include "kernels/cpu/simd.h"

namespace plumb::cpu::winograd {

using simd::kLanes;
using simd::kRegisters;
using simd::load;
using simd::relu;
using simd::store;
using simd::Vec;
using simd::vectors_of;

inline constexpr int64_t kPanelVectors = 2;
inline constexpr int64_t kPanel = kPanelVectors * kLanes;
/// Rows of C that fit in registers at once, beside one row of B and an element of A.
inline constexpr int64_t kBlockRows = (kRegisters - 4) / kPanelVectors;

/// The offsets in a matrix of `rows` x `vectors` * kLanes that is stored in panels.
struct Panels {
  int64_t rows, vectors;

  int64_t count() const { return ceil_div(vectors, kPanelVectors); }
  int64_t floats() const { return rows * vectors * kLanes; }
  /// Offset of the first row of panel p.
  int64_t offset(int64_t p) const { return p * rows * kPanel; }
  /// Vectors in each row of panel p.
  int64_t width(int64_t p) const { return std::min(kPanelVectors, vectors - p * kPanelVectors); }
  /// Offset of vector v of row r.
  int64_t at(int64_t r, int64_t v) const {
    const int64_t p = v / kPanelVectors;
    return offset(p) + (r * width(p) + v % kPanelVectors) * kLanes;
  }
};

/// How the left operand is stored.
enum class Left {
  kByRow,     ///< element (r, k) at r * stride + k
  kByColumn,  ///< element (r, k) at k * stride + r
};

/// C = A B, or C += A B, for one panel of `width` vectors of B and C. A is `rows` x `depth`, stored as `left` says.
/// Each element is summed in the order of `depth`.
template <Left left>
void multiply_panel(int64_t rows, int64_t depth, int64_t width, const float* a, int64_t stride, const float* b,
                    float* c, bool accumulate);

}  // namespace plumb::cpu::winograd
