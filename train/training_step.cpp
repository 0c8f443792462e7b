#include "train/training_step.h"

#include <algorithm>

#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "ops/reduce.h"

namespace plumb::training {

namespace {

StaticFunction captured_on(Device device, StaticFunction::Function f) {
  const DeviceScope on(device);
  return StaticFunction(std::move(f));
}

}  // namespace

const char* to_string(StepMode m) { return m == StepMode::kCaptured ? "captured" : "eager"; }

TensorList forward_backward(const models::Network& network, const models::ForwardContext& pass, const Tensor& images,
                            const Tensor& labels) {
  const Tensor logits = to(network.forward(images, pass), DType::kF32);
  const Tensor loss = cross_entropy(logits, labels);
  TensorList result{loss.detached(), argmax(logits, {1})};
  for (Tensor& g : pass.rounded ? pass.rounded->gradients(loss) : grad(loss, network.trainable()))
    result.push_back(std::move(g));
  return result;
}

TrainingStep::TrainingStep(const models::Network& network, optim::Optimizer& optimizer, Generator& generator,
                           StepMode mode)
    : network_(network),
      optimizer_(optimizer),
      generator_(generator),
      mode_(mode),
      captured_(captured_on(network.device(), [this](std::span<const Tensor> in) { return eager(in[0], in[1]); })) {
  const auto is_same = [](const Tensor& a, const Tensor& b) { return a.value->root() == b.value->root(); };
  PLUMB_CHECK(std::ranges::equal(network.trainable(), optimizer.parameters(), is_same),
              "train: the optimizer is not for the parameters of {}; make it of its trainable(), in that order",
              network.name());
}

TensorList TrainingStep::operator()(const Tensor& images, const Tensor& labels) {
  prepare(images.dtype());
  return mode_ == StepMode::kCaptured ? captured_({images, labels}) : eager(images, labels);
}

Program TrainingStep::program(const Tensor& images, const Tensor& labels) {
  prepare(images.dtype());
  return capture([&] { return eager(images, labels); });
}

void TrainingStep::prepare(DType images) {
  if (images != DType::kBf16) return;
  if (!rounded_) rounded_ = std::make_unique<models::RoundedParameters>(network_);
  rounded_->refresh();
}

TensorList TrainingStep::eager(const Tensor& images, const Tensor& labels) {
  models::ForwardContext pass = models::ForwardContext::training(generator_);
  if (images.dtype() == DType::kBf16) pass.rounded = rounded_.get();
  TensorList result = forward_backward(network_, pass, images, labels);
  const TensorList copies = pass.rounded ? rounded_->used() : TensorList();
  optimizer_.step(std::span<const Tensor>(result).subspan(2), copies);
  result.resize(2);
  return result;
}

}  // namespace plumb::training
