// Convolution by oneDNN.
#pragma once

#include "kernels/cpu/conv2d/conv_tensors.h"
#include "kernels/cpu/onednn/dnnl.h"

namespace plumb::cpu {

/// How oneDNN is asked: by which algorithm, on the tensors' own layouts or with every format left to it.
struct OnednnWay {
  dnnl::algorithm algorithm;
  bool blocked;
};

/// Whether it has these types, and something to do.
bool onednn_takes(const ConvTensors& c);

/// Null where oneDNN has no fast implementation that way, or not a right one.
std::unique_ptr<Kernel> onednn_conv2d(InnerProduct which, const ConvTensors& c, OnednnWay way);

}  // namespace plumb::cpu
