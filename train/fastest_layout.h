// The layout in which a network trains fastest on this machine.
#pragma once

#include "../models/network.h"

namespace plumb::training {

/// The layout to try first on a device, under the thread's policy; measures nothing.
Layout usual_layout(Device device, DType dtype);
/// The layout in which training is fastest here, on a GPU of nhwc and nchw; measured once per machine and stored.
Layout fastest_layout(const models::Network& network, DType dtype, int64_t batch);

}  // namespace plumb::training
