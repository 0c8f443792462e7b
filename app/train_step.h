// One step of training: what plumb train repeats, and what is timed beside the frameworks.
#pragma once

#include "graph/program.h"
#include "models/network.h"
#include "optim/optimizer.h"

namespace plumb::app {

/// The network's forward, loss and gradients for a batch: {loss, predictions, gradients...}.
TensorList forward_backward(const models::Network& network, const models::ForwardContext& pass, const Tensor& images,
                            const Tensor& labels);

class TrainStep {
 public:
  /// Keeps references to all three. A captured step is recorded once for each size of batch, and replayed.
  TrainStep(const models::Network& network, optim::Optimizer& optimizer, Generator& generator, bool is_captured);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;
  /// {loss, predictions} of the batch by the parameters before the update.
  TensorList operator()(const Tensor& images, const Tensor& labels);

 private:
  TensorList eager(const Tensor& images, const Tensor& labels);
  const models::Network& network_;
  optim::Optimizer& optimizer_;
  Generator& generator_;
  bool is_captured_;
  StaticFunction captured_;
};

}  // namespace plumb::app
