// Reductions over dimensions.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// What becomes of the elements along the reduced dimensions.
enum class Reduction : int32_t { kSum = 0, kMean = 1, kMax = 2 };

struct ReduceParams {
  Reduction what = Reduction::kSum;
  uint32_t dims = 0;  ///< bit d is set if dimension d of x is reduced
};

/// y from {x}. y has x's layout, and x's extents with 1 for reduced dimensions (the op drops them if asked to). A
/// maximum is NaN if any element is.
struct Reduce {
  static constexpr char kName[] = "reduce";
  using Params = ReduceParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

struct ArgmaxParams {
  uint32_t dims = 0;  ///< one bit is set, or all
  uint32_t unused = 0;
};

/// y (i64) from {x}, with the extents that Reduce gives: the index of the first maximum along the one reduced
/// dimension, or in the row-major order of all dimensions. NaN counts as the maximum; the first NaN wins.
struct Argmax {
  static constexpr char kName[] = "argmax";
  using Params = ArgmaxParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// dx from {dy, x, y} of a maximum: all elements equal to the maximum share dy equally. dy and y broadcast to x.
struct MaxBackward {
  static constexpr char kName[] = "max_backward";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

/// y from {x}, broadcast to y's larger shape.
struct Expand {
  static constexpr char kName[] = "expand";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
