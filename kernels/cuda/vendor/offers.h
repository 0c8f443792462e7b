// What the vendor's libraries offer beside our own kernels. Builds without them (the emulated device) offer nothing.
#pragma once

#include "kernels/conv2d.h"

namespace plumb::cuda {

enum class ConvDirection { kForward, kBackwardInput, kBackwardWeight };
struct ConvSpecs {
  TensorSpec x, w, y;
};

#ifdef PLUMB_HAS_VENDOR
/// What cuDNN plans for the problem's device, be it there or only described, in the order of its heuristics.
void offer_cudnn_conv2d(ConvDirection direction, const ConvSpecs& specs, const Problem<Conv2dParams>& p, Candidates&);
#else
inline void offer_cudnn_conv2d(ConvDirection, const ConvSpecs&, const Problem<Conv2dParams>&, Candidates&) {}
#endif

}  // namespace plumb::cuda
