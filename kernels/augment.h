// Images of bytes into a batch: crop, flip, normalise.
#pragma once

#include "../dispatch/kernel.h"
#include "functors/augment.h"

namespace plumb {

/// Writes the last of {pixels, windows, table, y}: pixels u8 (N, C, H, W), windows i32 (N, 3) as functors::Window, the
/// value of every byte in every channel f32 (C, 256), y (N, C, H, W) of f32 or bf16 in any layout.
struct Augment {
  static constexpr char kName[] = "augment";
  using Params = NoParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
