// Depthwise convolutions: an input channel has output channels of its own, whose windows see nothing else.
#pragma once

#include "kernels/conv2d.h"

namespace plumb::cuda {

/// These offer "depthwise" for f32, f64 and bf16, where there are as many groups as input channels.
void offer_depthwise_forward(const Problem<Conv2dParams>& p, Candidates& candidates);
void offer_depthwise_backward_input(const Problem<Conv2dParams>& p, Candidates& candidates);
void offer_depthwise_backward_weight(const Problem<Conv2dParams>& p, Candidates& candidates);

}  // namespace plumb::cuda
