#include "train/training_step.h"

#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "ops/reduce.h"

namespace plumb::training {

const char* to_string(StepMode m) { return m == StepMode::kCaptured ? "captured" : "eager"; }

TensorList forward_backward(const models::Network& network, const models::ForwardContext& pass, const Tensor& images,
                            const Tensor& labels) {
  const Tensor logits = to(network.forward(images, pass), DType::kF32);
  const Tensor loss = cross_entropy(logits, labels);
  TensorList result{loss.detached(), argmax(logits, {1})};
  for (Tensor& g : grad(loss, network.trainable())) result.push_back(std::move(g));
  return result;
}

TrainingStep::TrainingStep(const models::Network& network, optim::Optimizer& optimizer, Generator& generator,
                           StepMode mode)
    : network_(network),
      optimizer_(optimizer),
      generator_(generator),
      mode_(mode),
      captured_([this](std::span<const Tensor> in) { return eager(in[0], in[1]); }) {}

TensorList TrainingStep::operator()(const Tensor& images, const Tensor& labels) {
  return mode_ == StepMode::kCaptured ? captured_({images, labels}) : eager(images, labels);
}

TensorList TrainingStep::eager(const Tensor& images, const Tensor& labels) {
  TensorList result = forward_backward(network_, models::ForwardContext::training(generator_), images, labels);
  optimizer_.step(std::span<const Tensor>(result).subspan(2));
  result.resize(2);
  return result;
}

}  // namespace plumb::training
