#include "models/lenet.h"

namespace plumb::models {

LeNet::LeNet(ParameterMaker&& maker) : Network("lenet", Shape{1, 28, 28}, 10) {
  conv1 = Conv2d(maker, "conv1", 1, 6, 5, 1, 2);
  conv2 = Conv2d(maker, "conv2", 6, 16, 5);
  fc1 = Linear(maker, "fc1", 16 * 5 * 5, 120);
  fc2 = Linear(maker, "fc2", 120, 84);
  fc3 = Linear(maker, "fc3", 84, 10);
  finish(std::move(maker));
}

Tensor LeNet::forward(const Tensor& x, const ForwardContext& context) const {
  constexpr Activation kRelu = Activation::kRelu;
  Tensor h = max_pool(conv1(x, context, kRelu), 2, context);
  h = max_pool(conv2(h, context, kRelu), 2, context);
  h = fc1(flatten_layer(h, context), context, kRelu);
  h = fc2(dropout_layer(h, kDropout, context), context, kRelu);
  return fc3(h, context);
}

}  // namespace plumb::models
