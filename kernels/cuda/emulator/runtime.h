// The emulated device. A program that links the kernels compiled for the host has one, as cuda:0.
#pragma once

#include <memory>

#include "core/runtime.h"

namespace plumb::emulator {

/// One more, for add_device.
std::unique_ptr<Runtime> make_runtime();

}  // namespace plumb::emulator
