// Convolutions with few output pixels (a small image, a batch of one) as skinny products with plain weights.
#pragma once

#include "kernels/cpu/conv2d/conv_tensors.h"

namespace plumb::cpu {

/// The elements of x under each window become a row of a matrix (im2col); weights are read once, in place. Any layout
/// of x and y, any stride, dilation and padding. If the pixels of y are not rows in memory, y is converted, and the
/// conversion counted. Null unless f32, one group and few output pixels.
std::unique_ptr<Kernel> conv2d_im2col(InnerProduct which, const ConvTensors& c);

}  // namespace plumb::cpu
