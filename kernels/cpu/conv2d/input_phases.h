// The gradient of a convolution's x as convolutions of y's: pixels of x that are one remainder apart from multiples of
// the stride see the same taps of w, over neighbours in y.
#pragma once

#include <vector>

#include "kernels/conv2d.h"
#include "kernels/cpu/conv2d/window_panels.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {

/// The pixels of x (NHWC) with one remainder in each dimension.
struct InputPhase {
  ImageWindows windows;       ///< over dy, of a group's outputs; one for each of these pixels
  std::vector<int64_t> taps;  ///< of w's pixels, those that meet them, in the order of the windows' pixels
  int64_t at;                 ///< the first pixel's offset in dx
  RowPlaces places;           ///< of the pixels in dx, from there
};

/// All phases whose pixels meet a tap.
struct InputPhases {
  std::vector<InputPhase> all;
  bool leave_pixels_out = false;  ///< whether there are pixels that meet none: their gradient is zero
};
InputPhases input_phases(const Shape& x, const Shape& w, const Shape& y, const Conv2dParams& p);

/// Makes all n elements of dx zeros; phases then write those that meet a tap.
template <class T>
void put_zeros(T* dx, int64_t n) {
  parallel_for(n, kGrainBytes / sizeof(T), [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, T()); });
}

}  // namespace plumb::cpu
