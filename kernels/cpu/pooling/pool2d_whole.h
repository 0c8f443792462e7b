// Pooling by one window that takes all of a plane: every element is read once, in the order of memory.
#pragma once

#include "kernels/cpu/pooling/pool2d_plan.h"

namespace plumb::cpu::pool {

/// Whether there is such a window, and a pixel has one lane, or more than a walk (pool2d_walks.h) keeps in registers.
bool is_whole(const Extents& g);

/// The kernels of such windows, in f32 and bf16.
std::unique_ptr<Kernel> whole_max_forward(const Problem<Pool2dParams>& p, const Extents& g);
std::unique_ptr<Kernel> whole_avg_forward(const Problem<Pool2dParams>& p, const Extents& g);
/// Null where neighbours are of other planes; of maxima also where a plane is one element (when kernels are measured,
/// positions are 0 and 1, and this one writes where they say).
std::unique_ptr<Kernel> whole_max_backward(const Problem<Pool2dParams>& p, const Extents& g);
std::unique_ptr<Kernel> whole_avg_backward(const Problem<Pool2dParams>& p, const Extents& g);

}  // namespace plumb::cpu::pool
