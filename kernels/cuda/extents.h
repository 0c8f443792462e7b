// How large images may be.
#pragma once

#include "core/error.h"
#include "core/print.h"
#include "core/spec.h"
#include "kernels/window.h"

namespace plumb::cuda {

/// Throws where the places in an image (N, C, H, W) with its padding, which are 32-bit numbers, may not fit into them.
inline void check_extents(const char* name, const TensorSpec& image, const Padding2d& padding) {
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int i = 0; i < 2; ++i) {
    const int64_t padded = image.shape[2 + i] + padding[2 * i] + padding[2 * i + 1];
    PLUMB_CHECK(padded < kMost, "{}: images of {} with their padding are too large for the kernels of a device", name,
                image);
  }
}

}  // namespace plumb::cuda
