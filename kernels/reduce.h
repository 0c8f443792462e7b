// Reductions over dimensions.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

enum class Reduction : int32_t { kSum = 0, kMean = 1, kMax = 2 };

struct ReduceParams {
  Reduction what = Reduction::kSum;
  uint32_t dims = 0;  ///< bit d is set if dimension d of x is reduced
};

/// y from {x}; y has the extents of x, 1 where reduced (the op drops them if asked to), and x's layout. A maximum is
/// NaN where any element is.
struct Reduce {
  static constexpr char kName[] = "reduce";
  using Params = ReduceParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

struct ArgmaxParams {
  uint32_t dims = 0;  ///< one bit, or all
  uint32_t unused = 0;
};

/// y (i64) from {x}, of the extents that Reduce gives: the index of the first maximum within the one reduced dimension,
/// or within the row-major order of all. The first NaN counts as more than any number.
struct Argmax {
  static constexpr char kName[] = "argmax";
  using Params = ArgmaxParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// dx from {dy, x, y} of a maximum: dy shared equally among the elements equal to it. dy and y broadcast to x.
struct MaxBackward {
  static constexpr char kName[] = "max_backward";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

/// y of a larger shape from {x}, by broadcasting.
struct Expand {
  static constexpr char kName[] = "expand";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
