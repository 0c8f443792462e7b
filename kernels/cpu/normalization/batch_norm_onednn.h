// Batch normalisation by oneDNN.
#pragma once

#include "kernels/batch_norm.h"

namespace plumb::cpu {

/// Each is null where oneDNN has nothing but loops: in all layouts but NHWC, and for channels that fill no vectors.
std::unique_ptr<Kernel> onednn_batch_norm_forward(const Problem<BatchNormParams>& p);
/// Null as well where no dx is asked for.
std::unique_ptr<Kernel> onednn_batch_norm_backward(const Problem<BatchNormParams>& p);

}  // namespace plumb::cpu
