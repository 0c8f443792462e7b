#include "models/alexnet.h"

namespace plumb::models {

AlexNet::AlexNet(ParameterMaker&& maker) : Network("alexnet", Shape{3, 32, 32}, 10) {
  conv1 = Conv2d(maker, "conv1", 3, 192, 3, 2);
  conv2 = Conv2d(maker, "conv2", 192, 384, 3);
  conv3 = Conv2d(maker, "conv3", 384, 256, 3);
  conv4 = Conv2d(maker, "conv4", 256, 256, 3);
  conv5 = Conv2d(maker, "conv5", 256, 256, 3);
  fc1 = Linear(maker, "fc1", 256 * 2 * 2, 8192);
  fc2 = Linear(maker, "fc2", 8192, 8192);
  fc3 = Linear(maker, "fc3", 8192, 10);
  finish(std::move(maker));
}

Tensor AlexNet::forward(const Tensor& x, const ForwardContext& context) const {
  constexpr Activation kRelu = Activation::kRelu;
  const auto conv_pad = [&](const Conv2d& conv, const auto& in) {
    return zero_pad(conv(in, context, kRelu), 1, context);
  };
  Tensor h = max_pool(conv_pad(conv1, x), 2, context);
  h = max_pool(conv_pad(conv2, h), 2, context);
  h = max_pool(conv_pad(conv5, conv_pad(conv4, conv_pad(conv3, h))), 2, context);
  h = flatten_layer(h, context);
  h = fc1(h, context, kRelu);
  h = fc2(h, context, kRelu);
  return fc3(h, context);
}

}  // namespace plumb::models
