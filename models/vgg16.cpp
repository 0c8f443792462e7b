#include "models/vgg16.h"

namespace plumb::models {

Vgg16::Vgg16(ParameterMaker&& maker) : Network("vgg16", Shape{3, 32, 32}, 100) {
  struct Stage {
    int64_t channels;
    int convolutions;
  };
  int64_t in = 3;
  int number = 0;
  for (const Stage s : {Stage{64, 2}, {128, 2}, {256, 3}, {512, 3}}) {
    ++number;
    stages.emplace_back();
    for (int i = 1; i <= s.convolutions; ++i) {
      stages.back().emplace_back(maker, "conv" + std::to_string(number) + "_" + std::to_string(i), in, s.channels, 3);
      in = s.channels;
    }
  }
  fc1 = Linear(maker, "fc1", 512 * 2 * 2, 512);
  fc2 = Linear(maker, "fc2", 512, 100);
  finish(std::move(maker));
}

Tensor Vgg16::forward(const Tensor& x, const ForwardContext& context) const {
  Tensor h = x;
  for (const auto& stage : stages) {
    Padded padded{h};
    for (const Conv2d& conv : stage) padded = zero_pad(conv(padded, context, Activation::kRelu), 1, context);
    h = max_pool(padded, 2, context);
  }
  h = flatten_layer(h, context);
  return fc2(fc1(h, context, Activation::kRelu), context);
}

}  // namespace plumb::models
