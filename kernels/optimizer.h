// One step of an optimizer over all parameters at once.
//
// Inputs: the learning rate (a number of the parameters' dtype), the number of steps done (i64), then for n parameters
// n weights, n of each state and n gradients, every one of its parameter's spec. All between the rate and the gradients
// is written. What varies between steps is an input, so that a captured step replays right.
#pragma once

#include "functors/optimizer.h"
#include "kernel.h"

namespace plumb {

/// State: velocity, if there is momentum.
struct SgdUpdate {
  static constexpr char kName[] = "sgd";
  using Params = SgdParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// States: mean, mean_square.
struct AdamUpdate {
  static constexpr char kName[] = "adam";
  using Params = AdamParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// States: mean_square, mean if centered, velocity if there is momentum.
struct RmsPropUpdate {
  static constexpr char kName[] = "rmsprop";
  using Params = RmsPropParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
