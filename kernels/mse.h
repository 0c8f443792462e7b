// The mean squared error.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// The mean of (x - y)^2 over all elements, of shape (), from {x, y} of one spec, which have elements. Of bf16,
/// differences, squares and mean are f32.
struct MseForward {
  static constexpr char kName[] = "mse_forward";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

/// The gradient with respect to x, from {dy, x, y}, dy of the mean's spec: 2 (x - y) dy / n. With respect to y: from
/// {dy, y, x}.
struct MseBackward {
  static constexpr char kName[] = "mse_backward";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
