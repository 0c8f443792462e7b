// Depthwise convolutions: an input channel has output channels of its own, whose windows see nothing else.
#pragma once

#include "kernels/cuda/vendor/offers.h"

namespace plumb::cuda {

/// Offers "depthwise" for f32, f64 and bf16, where there are as many groups as input channels.
void offer_depthwise_forward(const Problem<Conv2dParams>& p, Candidates& candidates);
void offer_depthwise_backward_input(const Problem<Conv2dParams>& p, Candidates& candidates);
void offer_depthwise_backward_weight(const Problem<Conv2dParams>& p, Candidates& candidates);
inline void offer_depthwise(ConvDirection direction, const Problem<Conv2dParams>& p, Candidates& candidates) {
  switch (direction) {
    case ConvDirection::kForward: return offer_depthwise_forward(p, candidates);
    case ConvDirection::kBackwardInput: return offer_depthwise_backward_input(p, candidates);
    case ConvDirection::kBackwardWeight: return offer_depthwise_backward_weight(p, candidates);
  }
}

}  // namespace plumb::cuda
