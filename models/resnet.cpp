#include "models/resnet.h"

#include "models/init.h"
#include "ops/elementwise.h"
#include "ops/pool2d.h"
#include "ops/slice.h"

namespace plumb::models {
namespace {

Tensor classified(const Tensor& x, const Linear& fc, const ForwardContext& context) {
  const Tensor h = global_avg_pool2d(x);
  context.note("GlobalAvgPool2d", h);
  return fc(flatten_layer(h, context), context);
}

// torchvision draws the weights of convolutions otherwise than PyTorch's layers do.
void as_torchvision(Tensor& w, Convention convention, int64_t fan_in, int64_t fan_out, uint64_t seed) {
  if (convention == Convention::kPyTorch && w.rank() == 4) return kaiming_normal(w, seed, Fan::kOut);
  init_weight(w, convention, fan_in, fan_out, seed);
}

}  // namespace

BasicBlock::BasicBlock(ParameterMaker& maker, const std::string& name, int64_t in_channels, int64_t out_channels,
                       int first_stride)
    : in(in_channels), out(out_channels), stride(first_stride) {
  conv1 = Conv2d(maker, name + ".conv1", in, out, 3, stride, 1, false);
  bn1 = BatchNorm2d(maker, name + ".bn1", out);
  conv2 = Conv2d(maker, name + ".conv2", out, out, 3, 1, 1, false);
  bn2 = BatchNorm2d(maker, name + ".bn2", out);
}

Tensor BasicBlock::shortcut(const Tensor& x) const {
  if (stride == 1 && in == out) return x;
  // Every stride-th pixel is an average pooling over one pixel.
  const Tensor sampled = avg_pool2d(x, {.kernel = {1, 1}, .stride = {stride, stride}});
  return pad(sampled, Shape{0, (out - in) / 2, 0, 0}, sampled.shape().with(1, out));
}

Tensor BasicBlock::operator()(const Tensor& x, const ForwardContext& context) const {
  const Tensor h = bn1(conv1(x, context), context, Activation::kRelu);
  return bn2(conv2(h, context), context, Activation::kRelu, shortcut(x));
}

ResNet::ResNet(ParameterMaker&& maker, int depth) : Network("resnet" + std::to_string(depth), Shape{3, 32, 32}, 10) {
  PLUMB_CHECK(depth >= 8 && (depth - 2) % 6 == 0, "resnet: depth {} is not 6 n + 2", depth);
  const int n = (depth - 2) / 6;
  conv1 = Conv2d(maker, "conv1", 3, 16, 3, 1, 1, false);
  bn1 = BatchNorm2d(maker, "bn1", 16);
  int64_t in = 16;
  for (int stage = 1; stage <= 3; ++stage) {
    const int64_t out = int64_t{16} << (stage - 1);
    for (int i = 0; i < n; ++i) {
      const int stride = stage > 1 && i == 0 ? 2 : 1;
      blocks.emplace_back(maker, "layer" + std::to_string(stage) + "." + std::to_string(i), in, out, stride);
      in = out;
    }
  }
  fc = Linear(maker, "linear", 64, 10);
  finish(std::move(maker));
}

Tensor ResNet::forward(const Tensor& x, const ForwardContext& context) const {
  Tensor h = bn1(conv1(x, context), context, Activation::kRelu);
  for (const BasicBlock& block : blocks) h = block(h, context);
  return classified(h, fc, context);
}

Bottleneck::Bottleneck(ParameterMaker& maker, const std::string& name, int64_t in, int64_t channels, int stride) {
  const int64_t out = 4 * channels;
  conv1 = Conv2d(maker, name + ".conv1", in, channels, 1, 1, 0, false);
  bn1 = BatchNorm2d(maker, name + ".bn1", channels);
  conv2 = Conv2d(maker, name + ".conv2", channels, channels, 3, stride, 1, false);
  bn2 = BatchNorm2d(maker, name + ".bn2", channels);
  conv3 = Conv2d(maker, name + ".conv3", channels, out, 1, 1, 0, false);
  bn3 = BatchNorm2d(maker, name + ".bn3", out);
  if (stride == 1 && in == out) return;
  downsample = Conv2d(maker, name + ".downsample.0", in, out, 1, stride, 0, false);
  downsample_bn = BatchNorm2d(maker, name + ".downsample.1", out);
}

Tensor Bottleneck::operator()(const Tensor& x, const ForwardContext& context) const {
  Tensor h = bn1(conv1(x, context), context, Activation::kRelu);
  h = bn2(conv2(h, context), context, Activation::kRelu);
  h = conv3(h, context);
  const Tensor shortcut = downsample.weight ? downsample_bn(downsample(x, context), context) : x;
  return bn3(h, context, Activation::kRelu, shortcut);
}

ResNet50::ResNet50(ParameterMaker&& maker) : Network("resnet50", Shape{3, 224, 224}, 1000) {
  maker.fill_weights_by(as_torchvision);
  conv1 = Conv2d(maker, "conv1", 3, 64, 7, 2, 3, false);
  bn1 = BatchNorm2d(maker, "bn1", 64);
  constexpr int kBlocks[] = {3, 4, 6, 3};
  int64_t in = 64;
  for (int stage = 1; stage <= 4; ++stage) {
    const int64_t channels = int64_t{64} << (stage - 1);
    for (int i = 0; i < kBlocks[stage - 1]; ++i) {
      const int stride = stage > 1 && i == 0 ? 2 : 1;
      blocks.emplace_back(maker, "layer" + std::to_string(stage) + "." + std::to_string(i), in, channels, stride);
      in = 4 * channels;
    }
  }
  fc = Linear(maker, "fc", in, 1000);
  finish(std::move(maker));
}

Tensor ResNet50::forward(const Tensor& x, const ForwardContext& context) const {
  Tensor h = bn1(conv1(x, context), context, Activation::kRelu);
  h = max_pool2d(h, {.kernel = 3, .stride = 2, .padding = 1});
  context.note("MaxPool2d", h);
  for (const Bottleneck& block : blocks) h = block(h, context);
  return classified(h, fc, context);
}

}  // namespace plumb::models
