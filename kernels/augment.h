// Turns images of bytes into a batch: crops, flips, normalises.
#pragma once

#include "../dispatch/kernel.h"
#include "functors/augment.h"

namespace plumb {

/// Writes the last of {pixels, windows, table, y}: pixels u8 (N, C, H, W); windows i32 (N, 3), see functors::Window;
/// table f32 (C, 256), the value of every byte in every channel; y (N, C, H, W), f32 or bf16, in any layout.
struct Augment {
  static constexpr char kName[] = "augment";
  using Params = NoParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
