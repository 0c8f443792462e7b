// Copies of tensors.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// y from {x}, bit for bit; both of one spec. Any dtype and layout.
struct Copy {
  static constexpr char kName[] = "copy";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

/// Input 0 = input 1; both of one spec, without overlap in memory. Writes input 0.
struct CopyInto {
  static constexpr char kName[] = "copy_into";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
