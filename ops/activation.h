// The activations that conv2d and linear apply to their outputs.
#pragma once

#include "../core/tape.h"
#include "../kernels/activation.h"

namespace plumb::detail {

/// Throws a sentence that begins with `op` if `a` is not an enumerator.
void check_activation(const char* op, Activation a);

/// z's value with the activation's gradient edge on top of z's own: one value, two nodes. The gradient is computed from
/// the output, so nothing needs the activation's input.
Tensor record_activation(const Tensor& z, Activation a);

/// The node of a ReLU. If its output has a mask (kernels/linear.h), an op that uses the output may apply that itself,
/// and give its gradient directly to the node of the ReLU's input.
class ReluNode final : public Node {
 public:
  ReluNode(const Tensor& y, const Ref<Node>& z, Tensor mask);
  void backward(const Tensor& dy, GradientSink& sink) override;
  bool takes_sums() const override { return true; }
  void backward_of_sum(const Tensor& a, const Tensor& b, GradientSink& sink) override;
  void append_inputs(PoolVector<Node*>& inputs) const override { append(inputs, input_); }
  void release() override;
  /// The node of the ReLU's input.
  const Ref<Node>& input() const { return input_; }
  bool has_mask() const { return static_cast<bool>(mask_); }
  /// Throws if the node was released, or if the output was written to since.
  const Tensor& mask() const;

 private:
  const Tensor& output() const;
  Ref<Node> input_;
  Tensor y_;
  uint32_t y_version_;
  Tensor mask_;
};
/// record_activation of kRelu, with a mask of y if there is one.
Tensor record_relu(const Tensor& z, Tensor mask);
/// The node of the ReLU that made x, if that has a mask; otherwise null.
ReluNode* relu_behind(const Tensor& x);

}  // namespace plumb::detail
