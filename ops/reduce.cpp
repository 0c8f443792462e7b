#include "ops/reduce.h"

#include "dispatch/gate.h"
#include "kernels/reduce.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/reshape.h"

namespace plumb {
namespace {

uint32_t mask_of(const char* op, const TensorSpec& x, const Dims& dims) {
  uint32_t mask = dims.size() == 0 ? (1u << x.rank()) - 1 : 0;
  for (const int d : dims) {
    const int i = d < 0 ? d + x.rank() : d;
    PLUMB_CHECK(i >= 0 && i < x.rank(), "{}: dimension {} of x {} does not exist", op, d, x.shape);
    PLUMB_CHECK(!(mask >> i & 1), "{}: dimension {} of x {} is named twice", op, d, x.shape);
    mask |= 1u << i;
  }
  return mask;
}

Shape kept_shape(const Shape& x, uint32_t mask) {
  Shape s = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (mask >> d & 1) s = s.with(d, 1);
  }
  return s;
}

Shape dropped_shape(const Shape& x, uint32_t mask) {
  int64_t extents[kMaxRank];
  size_t rank = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (!(mask >> d & 1)) extents[rank++] = x[d];
  }
  return Shape(std::span<const int64_t>(extents, rank));
}

// The kernels of all of these are called "reduce": what they do not take is told by the op's name.
void check_reduces(const char* op, const Tensor& x) {
  PLUMB_CHECK(x, "{}: x is an empty tensor", op);
  detail::check_floating(op, x.spec());
  PLUMB_CHECK(x.dtype() != DType::kF16, "{}: x is {}; f16 is for keeping numbers, convert it with to before computing",
              op, x.spec());
}

// Reduces and keeps the reduced dimensions. Pass a row-major layout if they are dropped afterwards.
Tensor reduce_kept(Reduction what, const Tensor& x, uint32_t mask, Layout layout) {
  return run<Reduce>({what, mask}, {x}, TensorSpec(kept_shape(x.shape(), mask), x.dtype(), layout));
}

Tensor drop(const Tensor& y, const Shape& x, uint32_t mask) { return reshape(y, dropped_shape(x, mask)); }

int64_t terms(const Shape& x, uint32_t mask) {
  int64_t n = 1;
  for (int d = 0; d < x.rank(); ++d) n *= mask >> d & 1 ? x[d] : 1;
  return n;
}

Tensor sum_or_mean(Reduction what, const Tensor& x, uint32_t mask, bool keepdims) {
  const Layout layout = keepdims ? x.layout() : Layout::kNchw;
  const int64_t n = what == Reduction::kMean ? terms(x.shape(), mask) : 1;
  Tensor y = record(reduce_kept(what, x, mask, layout),
                    wrt(x, what == Reduction::kMean ? "mean" : "sum", [s = x.spec(), n](const Tensor& dy) {
                      return expand(to(n == 1 ? dy : dy / static_cast<double>(n), s.layout), s);
                    }));
  return keepdims ? y : drop(y, x.shape(), mask);
}

// dy shared equally among the elements of x that equal y; all in one layout. It is linear in dy, so the gradient with
// respect to dy is a product with the shares of ones. x and y have no gradient: shares change only where maxima tie.
Tensor max_backward(const Tensor& dy, const Tensor& x, const Tensor& y) {
  return record(run<MaxBackward>({}, {dy, x, y}, x.spec()),
                wrt(dy, "max", [x = SavedTensor(x, "max"), y = SavedTensor(y, "max")](const Tensor& g) {
                  return sum_to(mul(max_backward(ones_like(y()), x(), y()), g), y().spec());
                }));
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdims) {
  check_reduces("sum", x);
  return sum_or_mean(Reduction::kSum, x, mask_of("sum", x.spec(), dims), keepdims);
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdims) {
  check_reduces("mean", x);
  const uint32_t mask = mask_of("mean", x.spec(), dims);
  PLUMB_CHECK(terms(x.shape(), mask) > 0, "mean: x {} has no elements to average", x.shape());
  return sum_or_mean(Reduction::kMean, x, mask, keepdims);
}

Tensor max(const Tensor& x, const Dims& dims, bool keepdims) {
  check_reduces("max", x);
  const uint32_t mask = mask_of("max", x.spec(), dims);
  PLUMB_CHECK(terms(x.shape(), mask) > 0, "max: x {} has no elements to compare", x.shape());
  const Layout layout = keepdims ? x.layout() : Layout::kNchw;
  Tensor y = reduce_kept(Reduction::kMax, x, mask, layout);
  y = record(std::move(y), wrt(x, [x = SavedTensor(x)](const Tensor& dy, const Tensor& out) {
               const Tensor from = x().detached();
               return max_backward(to(dy, from.layout()), from, to(out.detached(), from.layout()));
             }));
  return keepdims ? y : drop(y, x.shape(), mask);
}

Tensor argmax(const Tensor& x, const Dims& dims, bool keepdims) {
  PLUMB_CHECK(x, "argmax: x is an empty tensor");
  PLUMB_CHECK(dims.size() <= 1, "argmax: {} dimensions were named; use one, or none for all elements", dims.size());
  const uint32_t mask = mask_of("argmax", x.spec(), dims);
  PLUMB_CHECK(terms(x.shape(), mask) > 0, "argmax: x {} has no elements to compare", x.shape());
  const TensorSpec kept(kept_shape(x.shape(), mask), DType::kI64, keepdims ? x.layout() : Layout::kNchw);
  const Tensor y = run<Argmax>({mask}, {x}, kept);
  return keepdims ? y : drop(y, x.shape(), mask);
}

Tensor sum_to(const Tensor& x, const TensorSpec& to) {
  PLUMB_CHECK(x, "sum_to: x is an empty tensor");
  if (x.shape() == to.shape) return x;
  check_reduces("sum_to", x);
  uint32_t mask = 0;
  const int shift = x.rank() - to.rank();
  bool fits = shift >= 0;
  for (int d = 0; fits && d < to.rank(); ++d) fits = to.shape[d] == 1 || to.shape[d] == x.shape()[d + shift];
  PLUMB_CHECK(fits, "sum_to: x {} is not what {} broadcasts to", x.shape(), to.shape);
  for (int d = 0; d < x.rank(); ++d) {
    if (d < shift || (to.shape[d - shift] == 1 && x.shape()[d] != 1)) mask |= 1u << d;
  }
  Tensor y = sum_or_mean(Reduction::kSum, x, mask, true);
  if (shift == 0) return y;
  // With lower rank the result is row-major, so drop the leading ones from the row-major order.
  return reshape(plumb::to(y, Layout::kNchw), to.shape);
}

Tensor expand(const Tensor& x, const TensorSpec& to) {
  PLUMB_CHECK(x, "expand: x is an empty tensor");
  PLUMB_CHECK(x.dtype() == to.dtype, "expand: x is {} and the result {}; convert x with to(dtype)", x.spec(), to);
  bool fits = x.rank() <= to.rank();
  for (int d = 1; fits && d <= x.rank(); ++d) fits = x.shape()[-d] == 1 || x.shape()[-d] == to.shape[-d];
  PLUMB_CHECK(fits, "expand: x {} does not broadcast to {}", x.shape(), to.shape);
  broadcast_spec("expand", x.spec(), to);  // what layouts it takes
  if (x.shape() == to.shape) return x;
  return record(run<Expand>({}, {x}, to), wrt(x, [s = x.spec()](const Tensor& dy) {
                  return detail::computed([&](const Tensor& g) { return sum_to(g, s); }, dy);
                }));
}

}  // namespace plumb
