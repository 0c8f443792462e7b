// Images of bytes into tensors: a window of each, perhaps mirrored, by a table of values. For the loader, which finds
// images anywhere in a data set, and for the kernel, which has them side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../../core/layout.h"
#include "../../core/spec.h"

namespace plumb::functors {

inline constexpr int64_t kPixelValues = 256;

/// Output pixel (y, x) is input pixel (y + dy, x + dx), black outside; then mirrored if `flip`.
struct Window {
  int32_t dy, dx, flip;
};

/// One row of a window: `source` is the input's row, or null where the window is outside.
template <class T>
void write_row(const uint8_t* source, int64_t width, const Window& window, const T* table, T* out, int64_t stride) {
  if (window.flip) {
    out += (width - 1) * stride;
    stride = -stride;
  }
  const int64_t dx = window.dx;
  const int64_t begin = source ? std::clamp<int64_t>(-dx, 0, width) : width;
  const int64_t end = source ? std::clamp<int64_t>(width - dx, begin, width) : width;
  for (int64_t x = 0; x < begin; ++x) out[x * stride] = table[0];
  if (stride == 1) {
    for (int64_t x = begin; x < end; ++x) out[x] = table[source[x + dx]];
  } else {
    for (int64_t x = begin; x < end; ++x) out[x * stride] = table[source[x + dx]];
  }
  for (int64_t x = end; x < width; ++x) out[x * stride] = table[0];
}

/// Images `first` to `last` of a batch of spec y. image(i) are the bytes (C, H, W) of image i, window(i) is its window;
/// a channel's values stand at tables + 256 channel.
template <class T, class Image, class WindowOf>
void write_images(const TensorSpec& y, int64_t first, int64_t last, const Image& image, const WindowOf& window,
                  const T* tables, T* out) {
  const int64_t channels = y.shape[1], height = y.shape[2], width = y.shape[3];
  const Strides stride = strides_of(y);
  // Images are taken in blocks, so that where N is innermost in memory, neighbours meet in the cache.
  constexpr int64_t kBlock = 32;
  Window windows[kBlock];
  const uint8_t* sources[kBlock];
  for (; first < last; first += kBlock) {
    const int64_t block = std::min(kBlock, last - first);
    for (int64_t i = 0; i < block; ++i) {
      windows[i] = window(first + i);
      sources[i] = image(first + i);
    }
    const auto row = [&](int64_t i, int64_t c, int64_t h) {
      const int64_t from = h + windows[i].dy;
      const uint8_t* plane = sources[i] + c * height * width;
      write_row(from >= 0 && from < height ? plane + from * width : nullptr, width, windows[i],
                tables + c * kPixelValues, out + (first + i) * stride[0] + c * stride[1] + h * stride[2], stride[3]);
    };
    if (y.layout == Layout::kChwn) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t h = 0; h < height; ++h) {
          for (int64_t i = 0; i < block; ++i) row(i, c, h);
        }
      }
    } else {
      for (int64_t i = 0; i < block; ++i) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t h = 0; h < height; ++h) row(i, c, h);
        }
      }
    }
  }
}

}  // namespace plumb::functors
