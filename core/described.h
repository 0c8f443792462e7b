// Devices that are not there: kernels are prepared and steps planned for them, and not run.
#pragma once

#include <string>

#include "device.h"

namespace plumb {

/// Adds a device to this process by its description, the JSON that cuDNN writes and reads. Tensors on it have addresses
/// of their own, and no memory: a step is captured for it with its kernels, arena and workspace, and running it, or
/// reading a tensor, throws a sentence. Throws on text that describes no device.
Device describe_device(const std::string& json);

}  // namespace plumb
