// Slices of a tensor by their numbers, and sums of slices by the number of each.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct IndexParams {
  int64_t dim = 0;  ///< the dimension whose slices are numbered
};

/// y from {x, index (N) of i64}: slice i of y along `dim` is slice index[i] of x. Any dtype and layout, the same for x
/// and y. run throws Error on an index outside of x; on a device only if y has elements.
struct IndexSelect {
  static constexpr char kName[] = "index_select";
  static constexpr char kBadIndex[] =
      "index_select: the index at {} is {}; with {} slices an index is at least 0 and less than that";
  using Params = IndexParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// dx from {dy, index (N) of i64}, the gradient of IndexSelect: slice k of dx along `dim` is the sum of those slices i
/// of dy whose index[i] is k, in their order, and 0 where there is none. run throws Error on an index outside of dx.
struct IndexAdd {
  static constexpr char kName[] = "index_add";
  static constexpr char kBadIndex[] =
      "index_add: the index at {} is {}; with {} slices an index is at least 0 and less than that";
  using Params = IndexParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
