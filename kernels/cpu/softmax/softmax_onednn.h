// Softmax by oneDNN.
#pragma once

#include "kernels/softmax.h"

namespace plumb::cpu {

/// Both return null where oneDNN has only plain loops: along any but the innermost dimension. The forward kernel is
/// also null for logarithms: oneDNN's are off by 1.4e-6 where one probability is nearly 1, and that leaves no digits.
/// oneDNN's exponentials of NaN are numbers, so a kernel of `own`, which computes the same, runs on inputs with NaN or
/// +infinity.
std::unique_ptr<Kernel> onednn_softmax_forward(const Problem<SoftmaxParams>& p, const Candidates::Make& own);
std::unique_ptr<Kernel> onednn_softmax_backward(const Problem<SoftmaxParams>& p, const Candidates::Make& own);

}  // namespace plumb::cpu
