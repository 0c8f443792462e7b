// The layout in which a network trains fastest on this machine.
#pragma once

#include "../models/network.h"

namespace plumb::training {

/// The layout to begin with on a device, under the thread's policy, without measuring.
Layout usual_layout(Device device, DType dtype);
/// The layout that is fastest for training here; measured once on a machine and remembered.
Layout fastest_layout(const models::Network& network, DType dtype, int64_t batch);

}  // namespace plumb::training
