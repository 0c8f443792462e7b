// Pooling by pieces of memory: square windows of 2 or 3, whose size the compiler knows.
#pragma once

#include "kernels/pool2d.h"

namespace plumb::cuda {

/// Offer "pieces" for the problems that have them.
void offer_max_pool2d_pieces(const Problem<Pool2dParams>& p, Candidates& candidates);
void offer_avg_pool2d_pieces(const Problem<Pool2dParams>& p, Candidates& candidates);
void offer_max_pool2d_backward_pieces(const Problem<Pool2dParams>& p, Candidates& candidates);
void offer_avg_pool2d_backward_pieces(const Problem<Pool2dParams>& p, Candidates& candidates);

/// Offer "stream" for windows that do not overlap and rows of neighbours, as in nchw, unless pieces of whole rows do
/// it.
void offer_max_pool2d_backward_stream(const Problem<Pool2dParams>& p, Candidates& candidates);
void offer_avg_pool2d_backward_stream(const Problem<Pool2dParams>& p, Candidates& candidates);

}  // namespace plumb::cuda
