// Pooling by one window that takes all of a plane: every element is read once, in the order of memory.
#pragma once

#include "kernels/cpu/pooling/pool2d_plan.h"

namespace plumb::cpu::pool {

/// Whether it is so, and a pixel has more lanes than a walk's run (pool2d_walks.h) keeps in registers, or one.
bool is_whole(const Extents& g);

/// {y} or {y, index}, and y, of such windows: f32 and bf16.
std::unique_ptr<Kernel> whole_max_forward(const Problem<Pool2dParams>& p, const Extents& g);
std::unique_ptr<Kernel> whole_avg_forward(const Problem<Pool2dParams>& p, const Extents& g);
/// dx from {dy, index}, and from {dy}; null where neighbours are of other planes.
std::unique_ptr<Kernel> whole_max_backward(const Problem<Pool2dParams>& p, const Extents& g);
std::unique_ptr<Kernel> whole_avg_backward(const Problem<Pool2dParams>& p, const Extents& g);

}  // namespace plumb::cpu::pool
