#pragma once

#include <cstdint>

namespace plumb {

/// The activation that a convolution or linear kernel may apply to its output.
enum class Activation : int32_t { kNone = 0, kRelu = 1 };

}  // namespace plumb
