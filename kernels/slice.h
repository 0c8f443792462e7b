// Parts of tensors: cutting out, putting into a larger one, and joining.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct SliceParams {
  int64_t begin[kMaxRank] = {};  ///< the element of x that becomes the first of y
};

/// y from {x}: the part of y's extents that starts at `begin`. Any dtype and layout, the same for x and y.
struct Slice {
  static constexpr char kName[] = "slice";
  using Params = SliceParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

struct PadParams {
  int64_t begin[kMaxRank] = {};  ///< the element of y that the first of x becomes
  Real value = 0.0;              ///< of all other elements of y
};

/// y from {x}, which is put into it at `begin`. Any dtype and layout, the same for x and y.
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

/// y from {x...}, one behind the other along `dim`. Any dtype and layout, the same for all.
struct Concat {
  static constexpr char kName[] = "concat";
  using Params = ConcatParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
