// Convolutions with few output pixels, as of a small image and a batch of one, as skinny products over plain weights.
#pragma once

#include "dispatch/kernel.h"
#include "kernels/conv2d.h"

namespace plumb::cpu {

/// What a window sees of x is gathered into a row of a matrix (im2col); weights are read as they are, once. Any layout
/// of x and y, stride, dilation and padding; a y whose pixels are no rows of its memory is converted, and counted. Null
/// unless f32, of one group and of few output pixels.
std::unique_ptr<Kernel> conv2d_im2col_forward(const Problem<Conv2dParams>& problem);
std::unique_ptr<Kernel> conv2d_im2col_backward_input(const Problem<Conv2dParams>& problem);
std::unique_ptr<Kernel> conv2d_im2col_backward_weight(const Problem<Conv2dParams>& problem);

}  // namespace plumb::cpu
