// VGG16 for CIFAR-100, 8,735,652 parameters.
#pragma once

#include "layers.h"

namespace plumb::models {

/// Ten convolutions in four stages (64, 128, 256, 512 channels), 3x3 without padding, each followed by ReLU and an
/// explicit zero padding of 1; a 2x2 pooling after each stage; two fully connected layers. Images (N, 3, 32, 32), 100
/// classes.
class Vgg16 final : public Network {
 public:
  explicit Vgg16(ParameterMaker&& maker);
  Tensor forward(const Tensor& x, const ForwardContext& context) const override;

  std::vector<std::vector<Conv2d>> stages;
  Linear fc1, fc2;
};

}  // namespace plumb::models
