// Ranges of indices, and how to cut them.
#pragma once

#include <cstdint>

namespace plumb::cpu {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Piece i of n things that are cut into `pieces` contiguous pieces of nearly equal size.
inline Range piece(int64_t n, int64_t i, int64_t pieces) { return {n * i / pieces, n * (i + 1) / pieces}; }

/// a / b rounded up, for a >= 0 and b > 0; 0 for a negative a.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace plumb::cpu
