// The training step that tests run both eagerly and captured.
#pragma once

#include "models/network.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "optim/optimizer.h"

namespace plumb::test {

/// Runs forward, backward and update on `in`, which is {images, labels}. Returns the loss.
inline TensorList train_step(const models::Network& network, optim::Optimizer& optimizer, Generator& generator,
                             std::span<const Tensor> in) {
  const Tensor loss = cross_entropy(network.forward(in[0], models::ForwardContext::training(generator)), in[1]);
  optimizer.step(grad(loss, network.trainable()));
  return {loss.detached()};
}

}  // namespace plumb::test
