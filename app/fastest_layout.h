// The layout in which a network trains fastest on this machine.
#pragma once

#include "models/network.h"

namespace plumb::app {

/// The layout that is fastest for training here; measured once on a machine and remembered.
Layout fastest_layout(const models::Network& network, DType dtype, int64_t batch);

}  // namespace plumb::app
