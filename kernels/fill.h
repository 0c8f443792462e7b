// Fills memory with one value.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct FillParams {
  Real value = 0.0;
};

/// y = the value; has no inputs.
struct Fill {
  static constexpr char kName[] = "fill";
  using Params = FillParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
