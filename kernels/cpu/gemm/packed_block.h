// The innermost part of a product of packed panels: blocks of the result that stay in registers.
#pragma once

#include "kernels/cpu/range.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {

/// A block of c in registers, beside a row of b and an element of a, has so many rows and columns.
inline constexpr int kBlockVectors = 2, kBlockRows = (simd::kRegisters - kBlockVectors - 1) / kBlockVectors;
inline constexpr int64_t kBlockColumns = kBlockVectors * simd::kLanes;

/// Where rows of c go, and what happens to them there.
struct BlocksOfC {
  float* c;
  const int64_t* at;  ///< of each row its offset in c
  int64_t rows;
  Range columns;      ///< at most kBlockColumns
  const float* bias;  ///< of all columns, or null
  bool first, last;   ///< whether c has no sums yet; whether these complete them
  bool relu;          ///< of complete sums
};

/// Rows of a as they lie in memory, for so many depths: up to so many rows, as many pointers as fit beside the others
/// in a processor's registers.
inline constexpr int kGatheredRows = kBlockRows < 8 ? kBlockRows : 8;
struct Stretch {
  const float* row[kGatheredRows];  ///< all null if these are zeros
  int64_t depth;
};

/// Adds to c the product of a, whose panels of kBlockRows rows lie one behind the other, and of one panel of b, which
/// has kBlockColumns columns. A panel has its lines side by side at each of `depth` depths.
void multiply_panel(int64_t depth, const float* a, const float* b, const BlocksOfC& to);

/// The same for rows of a that are gathered: of each kGatheredRows rows the stretches, which together are `depth` long.
void multiply_gathered(int64_t depth, const Stretch* a, const float* b, const BlocksOfC& to);

}  // namespace plumb::cpu
