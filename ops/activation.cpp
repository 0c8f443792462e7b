#include "ops/activation.h"

#include "ops/elementwise.h"

namespace plumb::detail {

void check_activation(const char* op, Activation a) {
  PLUMB_CHECK(a == Activation::kNone || a == Activation::kRelu, "{}: activation {} is unknown; use kNone or kRelu", op,
              static_cast<int>(a));
}

Tensor record_activation(const Tensor& z, Activation a) {
  if (a == Activation::kNone) return z;
  return record(z.detached(), wrt(z, functors::Relu::kName, [](const Tensor& dy, const Tensor& out) {
                  return unary_backward(functors::Relu{}, dy, out);
                }));
}

ReluNode::ReluNode(const Tensor& y, const Ref<Node>& z, Tensor mask)
    : input_(z), y_(std::in_place, y, functors::Relu::kName), mask_(std::move(mask)) {
  bytes = sizeof *this;
  number_after(z.get());
}
void ReluNode::backward(const Tensor& dy, GradientSink& sink) {
  // The output is passed without its node, so that there is no cycle.
  const Tensor y(output().value, sink.create_graph ? Ref<Node>(this) : Ref<Node>());
  sink.give(input_.get(), unary_backward(functors::Relu{}, dy, y), functors::Relu::kName);
}
void ReluNode::release() {
  y_.reset();
  mask_ = {};
}
const Tensor& ReluNode::output() const {
  if (!y_) fail_released();
  return (*y_)();
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

ReluNode* relu_behind(const Tensor& x) { return dynamic_cast<ReluNode*>(x.node.get()); }

}  // namespace plumb::detail
