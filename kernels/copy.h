// The same elements once more.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// y from {x}, of one spec, bit for bit. Any dtype and layout.
struct Copy {
  static constexpr char kName[] = "copy";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

/// Input 0 = input 1, both of one spec and apart in memory. Writes input 0.
struct CopyInto {
  static constexpr char kName[] = "copy_into";
  using Params = NoParams;
  static void reference(const Problem<NoParams>&, Candidates&);
  static void cpu(const Problem<NoParams>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<NoParams>&, Candidates&);
};

}  // namespace plumb
