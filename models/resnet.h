// Residual networks (He, Zhang, Ren, Sun: Deep residual learning, 2015): those for CIFAR-10 of section 4.2, and
// ResNet-50 for ImageNet of section 4.1.
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

/// A bottleneck: 1x1, 3x3 and 1x1 convolutions with batch norm, the last with four times the channels of the others.
/// The 3x3 has the stride, as in torchvision, whose version of the network is called 1.5 for it. Where the shape
/// changes, the shortcut is a 1x1 convolution with batch norm ("downsample.0" and "downsample.1").
struct Bottleneck {
  Conv2d conv1, conv2, conv3;
  BatchNorm2d bn1, bn2, bn3;
  Conv2d downsample;  ///< without a weight where the shortcut is x
  BatchNorm2d downsample_bn;

  Bottleneck(ParameterMaker& maker, const std::string& name, int64_t in, int64_t channels, int stride);
  Tensor operator()(const Tensor& x, const ForwardContext& context) const;
};

/// 7x7 convolution of stride 2, 3x3 maximum of stride 2, four stages of 3, 4, 6 and 3 bottlenecks of 64, 128, 256 and
/// 512 channels, global average pooling, a fully connected layer: 25,557,032 parameters. Images (N, 3, 224, 224), or of
/// any other size, 1000 classes. Names, and in PyTorch's convention the first distribution, are torchvision's:
/// "layer1.0.downsample.0.weight", He's normal numbers by the outputs of a convolution.
class ResNet50 final : public Network {
 public:
  explicit ResNet50(ParameterMaker&& maker);
  Tensor forward(const Tensor& x, const ForwardContext& context) const override;

  Conv2d conv1;
  BatchNorm2d bn1;
  std::vector<Bottleneck> blocks;
  Linear fc;
};

}  // namespace plumb::models
