// Fills memory with random numbers, for random tensors and for the operands of trials.
#pragma once

#include "../core/random.h"
#include "kernel.h"

namespace plumb {

struct RandomParams {
  Real first, range;  ///< as in detail::Distribution
  detail::Distribution::Kind kind;
  uint64_t seed;

  detail::Distribution distribution() const { return {static_cast<double>(first), static_cast<double>(range), kind}; }
};

/// Fills y with numbers of a distribution, in memory order; has no inputs.
struct RandomFill {
  static constexpr char kName[] = "random";
  using Params = RandomParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
