// Adds one gradient into another.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// Input 0 += input 1, both of one spec. Writes input 0.
struct Accumulate {
  static constexpr char kName[] = "accumulate";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
