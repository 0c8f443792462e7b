// AlexNet for CIFAR-10, 78,330,250 parameters.
#pragma once

#include "layers.h"

namespace plumb::models {

/// Convolutions are 3x3 without padding, each followed by ReLU and an explicit zero padding of 1; the first has
/// stride 2. Pooling is 2x2. Images (N, 3, 32, 32), 10 classes.
class AlexNet final : public Network {
 public:
  explicit AlexNet(ParameterMaker&& maker);
  Tensor forward(const Tensor& x, const ForwardContext& context) const override;

  Conv2d conv1, conv2, conv3, conv4, conv5;
  Linear fc1, fc2, fc3;
};

}  // namespace plumb::models
