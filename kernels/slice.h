// Parts of tensors: cutting one out, padding to a larger one, and joining several.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct SliceParams {
  int64_t begin[kMaxRank] = {};  ///< the index in x of the first element of y
};

/// y from {x}: the part of x that starts at `begin` and has y's extents. Any dtype and layout, the same for x and y.
struct Slice {
  static constexpr char kName[] = "slice";
  using Params = SliceParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

struct PadParams {
  int64_t begin[kMaxRank] = {};  ///< the index in y of the first element of x
  Real value = 0.0;              ///< of all elements of y outside x
};

/// y from {x}: x is placed in y at `begin`. Any dtype and layout, the same for x and y.
struct Pad {
  static constexpr char kName[] = "pad";
  using Params = PadParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

struct ConcatParams {
  int64_t dim = 0;
};

/// y from {x...}, joined one after another along `dim`. Any dtype and layout, the same for all.
struct Concat {
  static constexpr char kName[] = "concat";
  using Params = ConcatParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
