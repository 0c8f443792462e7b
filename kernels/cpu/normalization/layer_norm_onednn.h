// Layer normalisation by oneDNN.
#pragma once

#include "kernels/layer_norm.h"

namespace plumb::cpu {

/// Null where oneDNN has only plain loops.
std::unique_ptr<Kernel> onednn_layer_norm_forward(const Problem<LayerNormParams>& p);
/// Also null if no dx is asked for.
std::unique_ptr<Kernel> onednn_layer_norm_backward(const Problem<LayerNormParams>& p);

}  // namespace plumb::cpu
