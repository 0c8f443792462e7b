// Runs the threads of a launch on the host, block after block.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>

#include "core/runtime.h"

namespace plumb::emulator {

/// The order of blocks, and of threads within one. kGreedy: whoever can go on does, so that a warp runs as far ahead of
/// the others as barriers let it; only this shows a missing barrier between a read and a later write.
enum class Order { kForward, kBackward, kRandom, kGreedy };
/// From now on; kForward at first.
void set_order(Order order);

/// Asks before each access of memory that a kernel makes by get, put and their like whether it may; where not, the
/// launch throws. Null: nobody is asked.
using MayAccess = bool (*)(const void* begin, size_t bytes);
void watch_accesses(MayAccess may_access);

/// The bytes that kernels have read and written so far.
struct Counts {
  int64_t read = 0, written = 0;
};
Counts counts();
/// Grids of blocks.
using Grids = std::set<std::array<unsigned, 3>>;
/// The functions that were launched so far, "softmax_by_warps_kernel<float, false>", with the grids of blocks that they
/// had.
std::map<std::string, Grids> functions_run();

/// Runs all threads of a launch. Throws Error where threads of a block wait at different barriers, or end while others
/// wait for them.
void run_threads(const KernelCall& call, const void* arguments);

}  // namespace plumb::emulator
