// Work on a device as a graph.
#pragma once

#include <functional>
#include <memory>

#include "../core/runtime.h"

namespace plumb::detail {

/// Work on the stream that it is given, as one graph of the device.
std::unique_ptr<RuntimeGraph> captured(Runtime& runtime, const std::function<void(Runtime::Stream)>& work);

}  // namespace plumb::detail
