#include "ops/dropout.h"

#include "dispatch/gate.h"
#include "ops/convert.h"
#include "ops/elementwise.h"

namespace plumb {
namespace {

void check_probability(const char* op, double p) {
  PLUMB_CHECK(p >= 0 && p < 1, "{}: p is {}; it must be at least 0 and less than 1", op, p);
}

}  // namespace

Generator::Generator(uint64_t seed) {
  const int64_t start[2] = {static_cast<int64_t>(seed), 0};
  const TensorSpec spec(Shape{2}, DType::kI64);
  state = to(Tensor::from(std::span<const int64_t>(start), spec, MemoryClass::kState), detail::ctx.policy.device);
}

Tensor dropout(const Tensor& x, double p, Generator& generator, bool train) {
  PLUMB_CHECK(x, "dropout: x is an empty tensor");
  detail::check_floating("dropout", x.spec());
  check_probability("dropout", p);
  if (!train || p == 0) return x;
  PLUMB_CHECK(generator.state && generator.state.spec() == TensorSpec(Shape{2}, DType::kI64),
              "dropout: the generator's state is {}; it must be i64 (2)",
              generator.state ? to_string(generator.state.spec()) : "an empty tensor");
  if (!detail::ctx.recording || !x.requires_grad()) {
    return run<DropoutForward>({p}, {x, generator.state}, x.spec(), Writes{1, 1});
  }
  const TensorSpec out[2] = {x.spec(), x.spec().with(DType::kU8)};
  auto [y, mask] = run<DropoutForward>({p}, {x, generator.state}, out, Writes{1, 1});
  return record(std::move(y), wrt(x, [p, mask = mask](const Tensor& dy) { return dropout_backward(dy, mask, p); }));
}

Tensor dropout_backward(const Tensor& dy, const Tensor& mask, double p) {
  PLUMB_CHECK(dy && mask, "dropout_backward: {} is an empty tensor", dy ? "the mask" : "dy");
  check_probability("dropout_backward", p);
  PLUMB_CHECK(mask.spec() == dy.spec().with(DType::kU8), "dropout_backward: the mask is {}; for dy {} it must be {}",
              mask.spec(), dy.spec(), dy.spec().with(DType::kU8));
  return record(run<DropoutBackward>({p}, {dy, mask}, dy.spec()),
                wrt(dy, [p, mask = SavedTensor(mask)](const Tensor& g) { return dropout_backward(g, mask(), p); }));
}

}  // namespace plumb
