#include "ops/reshape.h"

#include "ops/convert.h"

namespace plumb {

Tensor reshape(const Tensor& x, const Shape& shape) {
  PLUMB_CHECK(x, "reshape: x is an empty tensor");
  PLUMB_CHECK(x.layout() == Layout::kNchw,
              "reshape: x is {}; in that layout another shape would change its meaning; convert it with to(nchw) first",
              x.spec());
  PLUMB_CHECK(shape.numel() == x.numel(), "reshape: x {} has {} elements, {} has {}", x.shape(), x.numel(), shape,
              shape.numel());
  if (shape == x.shape()) return x;
  return record(Tensor(detail::Value::alias(x.value, x.spec().with(shape))),
                wrt(x, [s = x.shape()](const Tensor& dy) { return reshape(dy, s); }));
}

Tensor reshape(const Tensor& x, std::initializer_list<int64_t> extents) {
  PLUMB_CHECK(x, "reshape: x is an empty tensor");
  int64_t e[kMaxRank] = {}, known = 1, open = -1;
  PLUMB_CHECK(extents.size() <= kMaxRank, "reshape: {} extents were given; the largest rank is {}", extents.size(),
              kMaxRank);
  for (size_t i = 0; i < extents.size(); ++i) {
    e[i] = extents.begin()[i];
    if (e[i] == -1) {
      PLUMB_CHECK(open < 0, "reshape: more than one extent is -1");
      open = static_cast<int64_t>(i);
    } else {
      PLUMB_CHECK(!__builtin_mul_overflow(known, e[i], &known),
                  "reshape: x {} has {} elements, and extent {} and those before it make more than there can be",
                  x.shape(), x.numel(), e[i]);
    }
  }
  if (open >= 0) {
    PLUMB_CHECK(known > 0 && x.numel() % known == 0, "reshape: x {} has {} elements, which {} does not divide",
                x.shape(), x.numel(), known);
    e[open] = x.numel() / known;
  }
  return reshape(x, Shape(std::span<const int64_t>(e, extents.size())));
}

Tensor flatten(const Tensor& x) {
  PLUMB_CHECK(x, "flatten: x is an empty tensor");
  PLUMB_CHECK(x.rank() >= 1, "flatten: x has no dimensions; it needs the first of (N, ...)");
  int64_t features = 1;
  for (int d = 1; d < x.rank(); ++d) features *= x.shape()[d];
  return reshape(to(x, Layout::kNchw), Shape{x.shape()[0], features});
}

}  // namespace plumb
