// Our own convolution: a product of matrices of which one is an image that is read through a window.
#pragma once

#include "kernels/cuda/vendor/offers.h"

namespace plumb::cuda {

/// Offers it as "direct" for a direction of a convolution, for weights that are row-major or, in nhwc, in krsc.
void offer_direct(ConvDirection direction, const ConvSpecs& s, const Problem<Conv2dParams>& p, Candidates& candidates);

}  // namespace plumb::cuda
