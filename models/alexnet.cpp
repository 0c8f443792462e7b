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

Tensor AlexNet::forward(const Tensor& x, const Pass& pass) const {
  constexpr Activation kRelu = Activation::kRelu;
  Tensor h = zero_pad(conv1(x, pass, kRelu), 1, pass);
  h = max_pool(h, 2, pass);
  h = zero_pad(conv2(h, pass, kRelu), 1, pass);
  h = max_pool(h, 2, pass);
  h = zero_pad(conv3(h, pass, kRelu), 1, pass);
  h = zero_pad(conv4(h, pass, kRelu), 1, pass);
  h = zero_pad(conv5(h, pass, kRelu), 1, pass);
  h = flatten_layer(max_pool(h, 2, pass), pass);
  h = fc1(h, pass, kRelu);
  h = fc2(h, pass, kRelu);
  return fc3(h, pass);
}

}  // namespace plumb::models
