// The layout in which a network trains fastest on this machine.
#pragma once

#include "models/network.h"

namespace plumb::app {

/// The seconds of one training step on random numbers in a layout, without changing the network.
double time_of_layout(const models::Network& network, Layout layout, DType dtype, int64_t batch);
/// The layout that is fastest for training here; measured once on a machine and remembered.
Layout fastest_layout(const models::Network& network, DType dtype, int64_t batch);

}  // namespace plumb::app
