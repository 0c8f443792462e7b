// One step of training: what is repeated, and what is timed beside the frameworks.
#pragma once

#include "../graph/program.h"
#include "../models/network.h"
#include "../optim/optimizer.h"

namespace plumb::training {

/// How a step is done: op by op, or recorded once and replayed.
enum class StepMode : uint8_t { kEager, kCaptured };
inline constexpr StepMode kStepModes[] = {StepMode::kEager, StepMode::kCaptured};
/// "eager", "captured".
const char* to_string(StepMode m);

/// The network's forward, loss and gradients for a batch: {loss, predictions, gradients...}. The loss is the mean cross
/// entropy, f32; the predictions are i64 (N). Nothing is read: on a device, nothing is waited for.
TensorList forward_backward(const models::Network& network, const models::ForwardContext& pass, const Tensor& images,
                            const Tensor& labels);

/// forward_backward, and an optimizer's update.
class TrainingStep {
 public:
  /// Keeps references to all three. A captured step is recorded once for each size of batch, and replayed.
  TrainingStep(const models::Network& network, optim::Optimizer& optimizer, Generator& generator, StepMode mode);
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;
  /// {loss, predictions} of the batch by the parameters before the update; of a captured step valid until the next.
  TensorList operator()(const Tensor& images, const Tensor& labels);

 private:
  TensorList eager(const Tensor& images, const Tensor& labels);
  const models::Network& network_;
  optim::Optimizer& optimizer_;
  Generator& generator_;
  StepMode mode_;
  StaticFunction captured_;
};

}  // namespace plumb::training
