#include "ops/permute.h"

#include "dispatch/gate.h"
#include "kernels/permute.h"
#include "ops/reshape.h"

namespace plumb {
namespace {

// Whether dimensions that have more than one index stay in their order, and with them all elements.
bool keeps_order(const Shape& x, const PermuteParams& p) {
  int last = -1;
  for (int d = 0; d < x.rank(); ++d) {
    if (x[p.dims[d]] == 1) continue;
    if (p.dims[d] < last) return false;
    last = p.dims[d];
  }
  return true;
}

Tensor permute(const Tensor& x, const PermuteParams& p) {
  PermuteParams inverse;
  int64_t extents[kMaxRank];
  for (int d = 0; d < x.rank(); ++d) {
    inverse.dims[p.dims[d]] = d;
    extents[d] = x.shape()[p.dims[d]];
  }
  const Shape shape(std::span<const int64_t>(extents, static_cast<size_t>(x.rank())));
  if (keeps_order(x.shape(), p)) return reshape(x, shape);
  const TensorSpec y = x.spec().with(shape);
  return record(run<Permute>(p, {x}, y), wrt(x, [inverse](const Tensor& dy) { return permute(dy, inverse); }));
}

}  // namespace

Tensor permute(const Tensor& x, const Dims& dims) {
  PLUMB_CHECK(x, "permute: x is an empty tensor");
  PLUMB_CHECK(x.layout() == Layout::kNchw, "permute: x is {}; convert it to row-major with to(nchw) first", x.spec());
  PLUMB_CHECK(static_cast<int>(dims.size()) == x.rank(), "permute: {} dimensions are named, x {} has {}", dims.size(),
              x.shape(), x.rank());
  PermuteParams p;
  uint32_t named = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const int dim = dims[static_cast<size_t>(d)], from = dim < 0 ? dim + x.rank() : dim;
    PLUMB_CHECK(from >= 0 && from < x.rank(), "permute: dimension {} of x {} does not exist", dim, x.shape());
    PLUMB_CHECK(!(named >> from & 1), "permute: dimension {} of x {} is named twice", from, x.shape());
    named |= 1u << from;
    p.dims[d] = from;
  }
  return permute(x, p);
}

}  // namespace plumb
