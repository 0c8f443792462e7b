// Batch normalisation by oneDNN.
#pragma once

#include "kernels/batch_norm.h"

namespace plumb::cpu {

/// Both functions return null where oneDNN has only loops: in layouts other than NHWC, and if channels fill no vectors.
std::unique_ptr<Kernel> onednn_batch_norm_forward(const Problem<BatchNormParams>& p);
/// Also null if no dx is asked for.
std::unique_ptr<Kernel> onednn_batch_norm_backward(const Problem<BatchNormParams>& p);

}  // namespace plumb::cpu
