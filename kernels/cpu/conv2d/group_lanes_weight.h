// The gradient of the weights of a convolution in groups of few channels.
#pragma once

#include "kernels/cpu/conv2d/lanes.h"
#include "kernels/cpu/conv2d/window_panels.h"

namespace plumb::cpu {

/// dw from {dy, x}, of so many images, by at most so many threads: as conv2d_group_lanes.
std::unique_ptr<Kernel> group_lanes_backward_weight(const LaneVectors& lanes, const ImageWindows& windows,
                                                    int64_t images, int most_threads);

}  // namespace plumb::cpu
