#include "ops/copy.h"

#include "core/runtime.h"
#include "dispatch/gate.h"
#include "kernels/copy.h"

namespace plumb {

Tensor clone(const Tensor& x) {
  PLUMB_CHECK(x, "clone: x is an empty tensor");
  return record(run<Copy>({}, {x}, x.spec()), wrt(x, [](const Tensor& dy) { return dy; }));
}

void copy_into(const Tensor& to, const Tensor& x) {
  PLUMB_CHECK(to && x, "copy_from: {} is an empty tensor", to ? "the other" : "this");
  PLUMB_CHECK(to.shape() == x.shape(), "copy_from: this is {} and the other {}; they must be of one shape", to.spec(),
              x.spec());
  PLUMB_CHECK(to.dtype() == x.dtype(), "copy_from: this is {} and the other {}; convert the other with to(dtype)",
              to.dtype(), x.dtype());
  PLUMB_CHECK(to.layout() == x.layout(), "copy_from: this is {} and the other {}; convert the other with to(layout)",
              to.layout(), x.layout());
  if (to.value->root() == x.value->root()) return;
  if (to.device() != x.device()) {
    detail::refuse_in_capture("copy_from", "copy between devices before");
    for (const Tensor* t : {&to, &x}) {
      PLUMB_CHECK(!t->value->is_symbolic(),
                  "copy_from: {} comes from a captured step and has no memory outside of it; return it from the step",
                  t->spec());
    }
    to.value->bump_version();
    return detail::copy_bytes(to.value->data, to.device(), x.value->data, x.device(), x.bytes());
  }
  update<CopyInto>({}, {to, x}, Writes{0, 1});
}

Tensor Tensor::clone() const { return plumb::clone(*this); }
void Tensor::copy_from(const Tensor& x) { copy_into(*this, x); }

}  // namespace plumb
