// Devices that are only described: kernels are prepared and steps planned for them, but nothing runs.
#pragma once

#include <string>

#include "device.h"

namespace plumb {

/// Adds a device to this process from its description, the JSON that cuDNN writes and reads. Tensors on the device have
/// addresses but no memory. A step can be captured for it, with kernels, arena and workspace; running the step or
/// reading a tensor throws. Throws on text that describes no device.
Device describe_device(const std::string& json);

}  // namespace plumb
