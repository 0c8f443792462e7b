#include "ops/elementwise.h"

#include <algorithm>

namespace plumb {

TensorSpec broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b) {
  PLUMB_CHECK(a.dtype == b.dtype, "{}: a is {} and b is {}; convert one of them with to(dtype)", op, a.dtype, b.dtype);
  const int rank = std::max(a.rank(), b.rank());
  int64_t extents[kMaxRank];
  for (int d = 1; d <= rank; ++d) {
    const int64_t ea = d <= a.rank() ? a.shape[-d] : 1, eb = d <= b.rank() ? b.shape[-d] : 1;
    PLUMB_CHECK(ea == eb || ea == 1 || eb == 1, "{}: a {} and b {} do not broadcast to one shape", op, a.shape,
                b.shape);
    extents[rank - d] = ea == 1 ? eb : ea;
  }
  PLUMB_CHECK(a.rank() != b.rank() || a.layout == b.layout,
              "{}: a is {} and b is {}; convert one of them with to(layout)", op, a, b);
  const Layout layout = a.rank() == rank ? a.layout : b.layout;
  return TensorSpec(Shape(std::span<const int64_t>(extents, static_cast<size_t>(rank))), a.dtype, layout);
}

namespace detail {

void check_floating(const char* op, const TensorSpec& x) {
  PLUMB_CHECK(is_floating(x.dtype), "{}: x is {}; convert it to a floating dtype with to(dtype)", op, x);
}

void refuse_third_derivative(const char* op) { fail("{}: derivatives beyond the second are not available", op); }

}  // namespace detail
}  // namespace plumb
