#include "ops/pad2d.h"

#include "ops/slice.h"

namespace plumb {

Tensor pad2d(const Tensor& x, const Sides<int64_t>& padding, double value) {
  PLUMB_CHECK(x, "pad2d: x is an empty tensor");
  PLUMB_CHECK(x.rank() == 4, "pad2d: x is {}; it must be (N, C, H, W)", x.spec());
  constexpr int64_t kLargest = int64_t{1} << 56;  // so that the sums below do not overflow
  for (const int64_t p : padding) {
    PLUMB_CHECK(p >= 0, "pad2d: a padding is {}; it must not be negative, cut with slice", p);
    PLUMB_CHECK(p <= kLargest, "pad2d: a padding is {}, which is more than fits into memory addresses", p);
  }
  const auto [top, bottom, left, right] = padding.of;
  const Shape& s = x.shape();
  return pad(x, {0, 0, top, left}, {s[0], s[1], s[2] + top + bottom, s[3] + left + right}, value);
}

}  // namespace plumb
