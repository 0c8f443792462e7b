// Pooling by oneDNN.
#pragma once

#include "kernels/pool2d.h"

namespace plumb::cpu {

/// Each is null where oneDNN has nothing but plain loops. `own` makes what computes the same: oneDNN's maximum
/// passes over NaN and -infinity, so that x is looked at first, and is left to that where it is not finite.
std::unique_ptr<Kernel> onednn_max_forward(const Problem<Pool2dParams>& p, const Candidates::Make& own);
std::unique_ptr<Kernel> onednn_max_backward(const Problem<Pool2dParams>& p);
std::unique_ptr<Kernel> onednn_avg_forward(const Problem<Pool2dParams>& p);
std::unique_ptr<Kernel> onednn_avg_backward(const Problem<Pool2dParams>& p);

}  // namespace plumb::cpu
