// The elements of each row in reverse order.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// y from {x}: y[..., i] = x[..., n - 1 - i]. Row-major, f32, bf16 or f64.
struct Flip {
  static constexpr char kName[] = "flip";
  using Params = NoParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
