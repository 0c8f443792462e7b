#include "ops/cross_entropy.h"

#include "dispatch/gate.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax.h"

namespace plumb {
namespace {

// The loss's cotangent dy in the logits' dtype, shaped to broadcast to (N, K); divided by N for the mean.
Tensor spread(const Tensor& dy, const TensorSpec& logits, LossReduction reduction) {
  const Tensor d = to(dy, logits.dtype);
  if (reduction == LossReduction::kNone) return reshape(d, Shape{logits.shape[0], 1});
  return reduction == LossReduction::kMean ? d * (1.0 / static_cast<double>(logits.shape[0])) : d;
}

}  // namespace

TensorSpec cross_entropy_output(const TensorSpec& logits, const TensorSpec& labels, LossReduction reduction) {
  detail::check_floating("cross_entropy", logits);
  PLUMB_CHECK(reduction >= LossReduction::kMean && reduction <= LossReduction::kNone,
              "cross_entropy: reduction {} is unknown; use kMean, kSum or kNone", static_cast<int>(reduction));
  PLUMB_CHECK(logits.rank() == 2, "cross_entropy: logits are {}; they must be (N, K): reshape them", logits);
  PLUMB_CHECK(labels == TensorSpec(Shape{logits.shape[0]}, DType::kI64),
              "cross_entropy: labels are {}; for logits {} they must be i64 ({})", labels, logits.shape,
              logits.shape[0]);
  PLUMB_CHECK(logits.shape[1] > 0, "cross_entropy: logits {} have no classes", logits.shape);
  PLUMB_CHECK(logits.shape[0] > 0 || reduction != LossReduction::kMean,
              "cross_entropy: logits {} have no rows to average; leave out the empty batch", logits.shape);
  const DType dtype = logits.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  return {reduction == LossReduction::kNone ? labels.shape : Shape(), dtype};
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, LossReduction reduction) {
  PLUMB_CHECK(logits && labels, "cross_entropy: {} are an empty tensor", logits ? "labels" : "logits");
  const TensorSpec spec = cross_entropy_output(logits.spec(), labels.spec(), reduction);
  const TensorSpec out[2] = {spec, TensorSpec(Shape{logits.shape()[0], 2}, spec.dtype)};
  auto [loss, statistics] = run<CrossEntropyForward>({reduction}, {logits, labels}, out);
  return record(std::move(loss),
                wrt(logits, [reduction, x = SavedTensor(logits), t = SavedTensor(labels), s = statistics](
                                const Tensor& dy) { return cross_entropy_backward(dy, x(), t(), s, reduction); }));
}

Tensor cross_entropy_backward(const Tensor& dy, const Tensor& logits, const Tensor& labels, const Tensor& statistics,
                              LossReduction reduction) {
  PLUMB_CHECK(dy && logits && labels && statistics, "cross_entropy_backward: {} is an empty tensor",
              !dy       ? "dy"
              : !logits ? "logits"
              : !labels ? "labels"
                        : "statistics");
  const TensorSpec loss = cross_entropy_output(logits.spec(), labels.spec(), reduction);
  PLUMB_CHECK(dy.spec() == loss, "cross_entropy_backward: dy is {}; for logits {} it must be {}", dy.spec(),
              logits.spec(), loss);
  const TensorSpec two_a_row(Shape{logits.shape()[0], 2}, loss.dtype);
  PLUMB_CHECK(statistics.spec() == two_a_row,
              "cross_entropy_backward: the statistics are {}; for logits {} they must be {}", statistics.spec(),
              logits.spec(), two_a_row);
  Tensor dx = run<CrossEntropyBackward>({reduction}, {dy, logits, labels, statistics}, logits.spec());
  return record(std::move(dx),
                wrt(dy,
                    [reduction, s = dy.spec(), x = SavedTensor(logits), t = SavedTensor(labels),
                     stat = statistics](const Tensor& g) {
                      const DeviceScope on(g.device());
                      const Tensor slope = cross_entropy_backward(ones(s), to(x(), s.dtype), t(), stat, reduction);
                      const Tensor product = mul(to(g, s.dtype), slope);  // of bf16, as exact as the loss
                      return reduction == LossReduction::kNone ? sum(product, {1}) : sum(product);
                    }),
                wrt(logits, [reduction, dy = SavedTensor(dy), x = SavedTensor(logits)](const Tensor& g) {
                  const SoftmaxParams p = softmax_params("cross_entropy", x().spec(), 1, false);
                  return softmax_backward(mul(g, spread(dy(), x().spec(), reduction)), softmax(x(), 1), p);
                }));
}

}  // namespace plumb
