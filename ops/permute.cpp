#include "ops/permute.h"

#include "dispatch/gate.h"
#include "kernels/permute.h"

namespace plumb {
namespace {

Tensor permute(const Tensor& x, const PermuteParams& p) {
  PermuteParams inverse;
  int64_t extents[kMaxRank];
  for (int d = 0; d < x.rank(); ++d) {
    inverse.dims[p.dims[d]] = d;
    extents[d] = x.shape()[p.dims[d]];
  }
  const TensorSpec y = x.spec().with(Shape(std::span<const int64_t>(extents, static_cast<size_t>(x.rank()))));
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
  bool is_identity = true;
  for (int d = 0; d < x.rank(); ++d) {
    const int dim = dims[static_cast<size_t>(d)], from = dim < 0 ? dim + x.rank() : dim;
    PLUMB_CHECK(from >= 0 && from < x.rank(), "permute: dimension {} of x {} does not exist", dim, x.shape());
    PLUMB_CHECK(!(named >> from & 1), "permute: dimension {} of x {} is named twice", from, x.shape());
    named |= 1u << from;
    p.dims[d] = from;
    is_identity &= from == d;
  }
  return is_identity ? x : permute(x, p);
}

}  // namespace plumb
