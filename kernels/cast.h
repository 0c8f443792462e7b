// Conversion between dtypes.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// y from {x} of another dtype. To a floating dtype: rounded once, to nearest even. From a floating dtype to an
/// integer: towards zero; values out of range become the largest or smallest integer, and NaN becomes 0. Between
/// integers: modulo 2^bits.
struct Cast {
  static constexpr char kName[] = "cast";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
