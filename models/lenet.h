// LeNet for MNIST, 61,706 parameters.
#pragma once

#include "layers.h"

namespace plumb::models {

/// LeNet-5 in today's form: two 5x5 convolutions with ReLU and 2x2 pooling, dropout, three fully connected layers.
/// Images (N, 1, 28, 28), 10 classes.
class LeNet final : public Network {
 public:
  explicit LeNet(ParameterMaker&& maker);
  Tensor forward(const Tensor& x, const ForwardContext& context) const override;

  static constexpr double kDropout = 0.5;
  Conv2d conv1, conv2;
  Linear fc1, fc2, fc3;
};

}  // namespace plumb::models
