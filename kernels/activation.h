#pragma once

#include <cstdint>

namespace plumb {

/// What may be applied to the output of a convolution or a linear layer inside its kernel.
enum class Activation : int32_t { kNone = 0, kRelu = 1 };

}  // namespace plumb
