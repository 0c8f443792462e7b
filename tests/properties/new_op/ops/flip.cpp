#include "ops/flip.h"

#include "dispatch/gate.h"
#include "kernels/flip.h"
#include "ops/elementwise.h"

namespace plumb {

Tensor flip(const Tensor& x) {
  PLUMB_CHECK(x && x.rank() > 0, "flip: x needs at least one dimension");
  PLUMB_CHECK(x.layout() == Layout::kNchw, "flip: x is {}; convert it with to(nchw) first", x.spec());
  detail::check_floating("flip", x.spec());
  return record(run<Flip>({}, {x}, x.spec()), wrt(x, [](const Tensor& dy) { return flip(dy); }));
}

}  // namespace plumb
