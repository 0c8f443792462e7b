#include "ops/slice.h"

#include <algorithm>

#include "dispatch/gate.h"
#include "kernels/slice.h"

namespace plumb {
namespace {

// Throws unless the box with `extents` at `begin` lies within `all`.
void check_box(const char* op, const Shape& all, const Shape& begin, const Shape& extents) {
  bool fits = begin.rank() == all.rank() && extents.rank() == all.rank();
  for (int d = 0; fits && d < all.rank(); ++d) fits = extents[d] <= all[d] && begin[d] <= all[d] - extents[d];
  PLUMB_CHECK(fits, "{}: a part of shape {} that starts at {} does not lie within {}", op, extents, begin, all);
}

}  // namespace

Tensor slice(const Tensor& x, const Shape& begin, const Shape& extents) {
  PLUMB_CHECK(x, "slice: x is an empty tensor");
  check_box("slice", x.shape(), begin, extents);
  if (extents == x.shape()) return x;
  SliceParams p;
  std::copy(begin.begin(), begin.end(), p.begin);
  return record(run<Slice>(p, {x}, x.spec().with(extents)),
                wrt(x, [begin, s = x.shape()](const Tensor& dy) { return pad(dy, begin, s); }));
}

Tensor pad(const Tensor& x, const Shape& begin, const Shape& extents, double value) {
  PLUMB_CHECK(x, "pad: x is an empty tensor");
  check_box("pad", extents, begin, x.shape());
  if (extents == x.shape()) return x;
  PadParams p;
  std::copy(begin.begin(), begin.end(), p.begin);
  p.value = value;
  return record(run<Pad>(p, {x}, x.spec().with(extents)),
                wrt(x, [begin, s = x.shape()](const Tensor& dy) { return slice(dy, begin, s); }));
}

}  // namespace plumb
