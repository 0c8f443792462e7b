// Convolutions in f64 as products of windows and weights, by Eigen.
#pragma once

#include "kernels/cpu/conv2d/conv_tensors.h"

namespace plumb::cpu {

/// The elements of x under each window are a row of a matrix (im2col), of which a thread holds so much as its caches
/// do. Any layout, stride, dilation, padding and number of groups; the same bits for any number of threads. Null unless
/// it is of f64 and has elements.
std::unique_ptr<Kernel> conv2d_f64(InnerProduct which, const ConvTensors& c, int threads);

}  // namespace plumb::cpu
