#include "ops/convert.h"

#include "core/runtime.h"
#include "dispatch/gate.h"
#include "kernels/cast.h"
#include "kernels/permute.h"

namespace plumb {
namespace {

// Whether both layouts order the elements of x alike, as for (N, C, 1, 1).
bool same_order(const TensorSpec& x, Layout layout) {
  const DimOrder a = memory_order(x.layout, x.rank()), b = memory_order(layout, x.rank());
  int i = 0;
  for (int j = 0; j < x.rank(); ++j) {
    if (x.shape[b[j]] == 1) continue;
    while (x.shape[a[i]] == 1) ++i;
    if (a[i++] != b[j]) return false;
  }
  return true;
}

}  // namespace

Tensor to(const Tensor& x, Layout layout) {
  PLUMB_CHECK(x, "to: x is an empty tensor");
  if (x.layout() == layout) return x;
  PLUMB_CHECK(is_public(layout) && is_public(x.layout()),
              "to: x is {} and the layout {}; convert between nchw, nhwc and chwn", x.spec(), layout);
  PLUMB_CHECK(x.rank() == 4, "to: x has shape {}; layout {} is for tensors of rank 4, use nchw", x.shape(), layout);
  const TensorSpec spec = x.spec().with(layout);
  Tensor y = same_order(x.spec(), layout) ? Tensor(detail::Value::alias(x.value, spec)) : run<Permute>({}, {x}, spec);
  return record(std::move(y), wrt(x, [from = x.layout()](const Tensor& dy) { return to(dy, from); }));
}

Tensor to(const Tensor& x, DType dtype) {
  PLUMB_CHECK(x, "to: x is an empty tensor");
  if (x.dtype() == dtype) return x;
  Tensor y = run<Cast>({}, {x}, x.spec().with(dtype));
  if (!is_floating(dtype)) return y;
  return record(std::move(y), wrt(x, [from = x.dtype()](const Tensor& dy) { return to(dy, from); }));
}

// Bypasses the gate, since a kernel's operands are all on one device.
Tensor to(const Tensor& x, Device device) {
  PLUMB_CHECK(x, "to: x is an empty tensor");
  if (x.device() == device) return x;
  detail::refuse_in_capture("to", "move the tensor between devices before");
  PLUMB_CHECK(!x.value->is_symbolic(), "to: {} comes from a captured step and has no memory outside of it", x.spec());
  Tensor y = Tensor::empty(x.spec(), x.value->memory_class, device);
  detail::copy_bytes(y.value->data, device, x.value->data, x.device(), x.bytes());
  return record(std::move(y), wrt(x, [from = x.device()](const Tensor& dy) { return to(dy, from); }));
}

}  // namespace plumb
