// Filling memory with random numbers: what tensors of them, and the operands of trials, are made by.
#pragma once

#include "../core/random.h"
#include "kernel.h"

namespace plumb {

struct RandomParams {
  Real first, range;  ///< of detail::Distribution
  int64_t is_normal;
  uint64_t seed;

  detail::Distribution distribution() const {
    return {static_cast<double>(first), static_cast<double>(range), is_normal};
  }
};

/// y from nothing: the numbers of a distribution, in the order of memory.
struct RandomFill {
  static constexpr char kName[] = "random";
  using Params = RandomParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
