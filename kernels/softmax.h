// Softmax along one dimension.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct SoftmaxParams {
  int32_t dim = 0;  ///< the dimension along which probabilities add up to 1; not negative
  int32_t log = 0;  ///< 1: logarithms of the probabilities
};

/// y from {x}, both of one spec: e^x / sum e^x, or x - log sum e^x; the maximum is subtracted from x first.
struct SoftmaxForward {
  static constexpr char kName[] = "softmax_forward";
  using Params = SoftmaxParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// dx from {dy, y}, all of one spec: y (dy - sum dy y), or dy - e^y sum dy.
struct SoftmaxBackward {
  static constexpr char kName[] = "softmax_backward";
  using Params = SoftmaxParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
