// Captures work on a device as a graph.
#pragma once

#include <functional>
#include <memory>

#include "../core/runtime.h"

namespace plumb::detail {

/// The graph of the work that `work` puts on the stream it gets.
std::unique_ptr<RuntimeGraph> captured(Runtime& runtime, const std::function<void(Runtime::Stream)>& work);

}  // namespace plumb::detail
