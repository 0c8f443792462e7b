// What a program holds, and how it is built from a recording.
#pragma once

#include "core/block.h"
#include "graph/program.h"
#include "graph/program/recording.h"

namespace plumb {

struct Program::Impl {
  struct Step {
    const Kernel* kernel;
    Launch launch;
    const PreparedKernel* prepared;
    Phase phase;
  };
  struct Watched {  // a value whose pack is kept, and the version that was packed
    detail::Ref<detail::Value> value;
    uint32_t version;
  };
  Device device;    // on which all of it runs
  int threads = 1;  // of the host's kernels
  std::vector<Step> steps, packers;
  std::vector<void*> pointers;  // those of all launches
  std::vector<Watched> watched;
  std::vector<detail::Ref<detail::Value>> written, held;
  std::vector<detail::Ref<PreparedKernel>> kernels;
  detail::Block arena, workspace;
  std::unique_ptr<RuntimeGraph> graph;  // of the steps; only on a device
  bool has_run = false;
  TensorList outputs;
  ProgramStats stats;

  /// Fills an empty program from a recording, which must be pruned. Throws Error if a tensor of an earlier capture is
  /// used or returned.
  void build(detail::Recording&& recording, const TensorList& returned);
  void run_steps();

 private:
  class Builder;
};

}  // namespace plumb
