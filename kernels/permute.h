// Reordering elements: permutations of dimensions and conversions between layouts.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct PermuteParams {
  int32_t dims[kMaxRank] = {0, 1, 2, 3, 4, 5};  ///< dimension d of y is dimension dims[d] of x
};

/// y from {x}, of any dtype. x and y may have different layouts: with the identity permutation, this converts layouts.
struct Permute {
  static constexpr char kName[] = "permute";
  using Params = PermuteParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
