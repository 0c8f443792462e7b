// Adds one gradient into another.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// Input 0 += input 1, both of one spec. Writes input 0. If there is an input 2, the output of a ReLU whose gradient
/// that sum is, it becomes the gradient of the ReLU's input: 0 where the output is not above 0.
struct Accumulate {
  static constexpr char kName[] = "accumulate";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
