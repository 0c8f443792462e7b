// ResNets for CIFAR-10 (He, Zhang, Ren, Sun: Deep residual learning, 2015, section 4.2).
#pragma once

#include "layers.h"

namespace plumb::models {

/// A residual block: two 3x3 convolutions with batch norm. Where the shape changes, the shortcut takes every second
/// pixel and pads the channels with zeros (option A): no parameters.
struct BasicBlock {
  Conv2d conv1, conv2;
  BatchNorm2d bn1, bn2;
  int64_t in = 0, out = 0;
  int stride = 1;

  BasicBlock(ParameterMaker& maker, const std::string& name, int64_t in_channels, int64_t out_channels,
             int first_stride);
  Tensor operator()(const Tensor& x, const ForwardContext& context) const;

 private:
  Tensor shortcut(const Tensor& x) const;
};

/// Depth 6 n + 2: a convolution, three stages of n blocks with 16, 32 and 64 channels, global average pooling, a fully
/// connected layer. Images (N, 3, 32, 32), 10 classes. Parameters have PyTorch's names: "layer1.0.conv1.weight".
class ResNet final : public Network {
 public:
  ResNet(ParameterMaker&& maker, int depth);
  Tensor forward(const Tensor& x, const ForwardContext& context) const override;

  Conv2d conv1;
  BatchNorm2d bn1;
  std::vector<BasicBlock> blocks;
  Linear fc;
};

}  // namespace plumb::models
