// The activation that conv2d and linear fuse.
#pragma once

#include <optional>

#include "../core/tape.h"
#include "../kernels/activation.h"

namespace plumb::detail {

/// Throws a sentence that begins with `op` if `a` is none of the enumerators.
void check_activation(const char* op, Activation a);

/// z's value with the gradient edge of the activation on top of z's own: one value, two nodes. The gradient comes from
/// the output, so nothing needs what was before it.
Tensor record_activation(const Tensor& z, Activation a);

/// The node of a ReLU whose output has a mask (kernels/linear.h): what follows it may give its gradient to what was
/// before it, by the mask.
class ReluNode final : public Node {
 public:
  ReluNode(const Tensor& y, const Ref<Node>& z, Tensor mask);
  void backward(const Tensor& dy, GradientSink& sink) override;
  void append_inputs(PoolVector<Node*>& inputs) const override { append(inputs, input_); }
  void release() override;
  /// The node of what was before the ReLU.
  const Ref<Node>& input() const { return input_; }
  /// Throws once the node is released, and if the output was written to since.
  const Tensor& mask() const;

 private:
  const Tensor& output() const;
  Ref<Node> input_;
  std::optional<SavedTensor> y_;
  Tensor mask_;
};
/// record_activation of kRelu, with such a node where z has one.
Tensor record_relu(const Tensor& z, Tensor mask);
/// The node of the ReLU that x comes out of, if it has a mask; otherwise null.
ReluNode* relu_behind(const Tensor& x);

}  // namespace plumb::detail
