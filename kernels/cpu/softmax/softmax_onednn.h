// Softmax by oneDNN.
#pragma once

#include "kernels/softmax.h"

namespace plumb::cpu {

/// Each is null where oneDNN has nothing but plain loops: along any but the innermost dimension. So is the forward one
/// of logarithms, which are off by 1.4e-6 where one probability is nearly 1, and nothing of them is left. Its
/// exponentials of NaN are numbers: `own` makes what computes the same, for what has some or infinities.
std::unique_ptr<Kernel> onednn_softmax_forward(const Problem<SoftmaxParams>& p, const Candidates::Make& own);
std::unique_ptr<Kernel> onednn_softmax_backward(const Problem<SoftmaxParams>& p, const Candidates::Make& own);

}  // namespace plumb::cpu
