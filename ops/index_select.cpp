#include "ops/index_select.h"

#include "dispatch/gate.h"
#include "kernels/index_select.h"
#include "ops/convert.h"
#include "ops/elementwise.h"

namespace plumb {
namespace {

// Makes every check of both ops; returns the dimension counted from the front.
int checked_dim(const char* op, const Tensor& x, int dim, const Tensor& index) {
  PLUMB_CHECK(x && index, "{}: {} is an empty tensor", op, x ? "the index" : "x");
  PLUMB_CHECK(dim >= -x.rank() && dim < x.rank(), "{}: dimension {} of x {} does not exist", op, dim, x.shape());
  PLUMB_CHECK(index.dtype() == DType::kI64 && index.rank() == 1, "{}: the index is {}; it must be i64 (N)", op,
              index.spec());
  return dim < 0 ? dim + x.rank() : dim;
}

}  // namespace

Tensor index_select(const Tensor& x, int dim, const Tensor& index) {
  const int d = checked_dim("index_select", x, dim, index);
  const TensorSpec spec = x.spec().with(x.shape().with(d, index.numel()));
  return record(run<IndexSelect>({d}, {x, index}, spec),
                wrt(x, [d, i = SavedTensor(index), slices = x.shape()[d]](const Tensor& dy) {
                  return detail::computed([&](const Tensor& g) { return index_add(g, d, i(), slices); }, dy);
                }));
}

Tensor index_add(const Tensor& x, int dim, const Tensor& index, int64_t slices) {
  const int d = checked_dim("index_add", x, dim, index);
  detail::check_floating("index_add", x.spec());
  PLUMB_CHECK(x.shape()[d] == index.numel(), "index_add: the index has {} numbers; dimension {} of x {} has {} slices",
              index.numel(), dim, x.shape(), x.shape()[d]);
  PLUMB_CHECK(slices >= 0, "index_add: y cannot have {} slices", slices);
  const TensorSpec spec = x.spec().with(x.shape().with(d, slices));
  return record(run<IndexAdd>({d}, {x, index}, spec),
                wrt(x, [d, i = SavedTensor(index)](const Tensor& dy) { return index_select(dy, d, i()); }));
}

}  // namespace plumb
