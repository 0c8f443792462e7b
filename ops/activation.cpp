#include "ops/activation.h"

#include "dispatch/gate.h"
#include "kernels/accumulate.h"
#include "ops/elementwise.h"

namespace plumb::detail {

void check_activation(const char* op, Activation a) {
  PLUMB_CHECK(a == Activation::kNone || a == Activation::kRelu, "{}: activation {} is unknown; use kNone or kRelu", op,
              static_cast<int>(a));
}

Tensor record_activation(const Tensor& z, Activation a) { return a == Activation::kNone ? z : record_relu(z, {}); }

ReluNode::ReluNode(const Tensor& y, const Ref<Node>& z, Tensor mask)
    : input_(z), y_(y.detached()), y_version_(y.value->version()), mask_(std::move(mask)) {
  bytes = sizeof *this;
  number_after(z.get());
}
void ReluNode::backward(const Tensor& dy, GradientSink& sink) {
  // The output is passed without its node, so that there is no cycle.
  const Tensor y(output().value, sink.create_graph ? Ref<Node>(this) : Ref<Node>());
  sink.give(input_.get(), unary_backward(functors::Relu{}, dy, y), functors::Relu::kName);
}
void ReluNode::backward_of_sum(const Tensor& a, const Tensor& b, GradientSink& sink) {
  update<Accumulate>({}, {a, b, output()}, Writes{0, 1});
  sink.give(input_.get(), a, functors::Relu::kName);
}
void ReluNode::release() {
  y_ = {};
  mask_ = {};
}
const Tensor& ReluNode::output() const {
  if (!y_) fail_released();
  check_output(*y_.value, y_version_, functors::Relu::kName);
  return y_;
}
const Tensor& ReluNode::mask() const {
  output();
  return mask_;
}

Tensor record_relu(const Tensor& z, Tensor mask) {
  Tensor y = z.detached();
  if (z.node) attach<ReluNode>(y, y, z.node, std::move(mask));
  return y;
}

ReluNode* relu_behind(const Tensor& x) {
  auto* const relu = dynamic_cast<ReluNode*>(x.node.get());
  return relu && relu->has_mask() ? relu : nullptr;
}

}  // namespace plumb::detail
