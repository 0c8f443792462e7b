// One training step: the unit that is repeated, and that is timed against other frameworks.
#pragma once

#include "../graph/program.h"
#include "../models/rounded.h"
#include "../optim/optimizer.h"

namespace plumb::training {

/// How a step runs: op by op, or captured once and replayed.
enum class StepMode : uint8_t { kEager, kCaptured };
inline constexpr StepMode kStepModes[] = {StepMode::kEager, StepMode::kCaptured};
/// "eager", "captured".
const char* to_string(StepMode m);

/// The network's forward pass, loss and gradients for a batch: {loss, predictions, gradients...}. The loss is the mean
/// cross entropy, f32; the predictions are i64 (N); the gradients are those of RoundedParameters::gradients, if the
/// pass has some, else of the network's parameters. Reads no results, so on a device it does not wait.
TensorList forward_backward(const models::Network& network, const models::ForwardContext& pass, const Tensor& images,
                            const Tensor& labels);

/// forward_backward, and an optimizer's update. Of images in bf16 it keeps the parameters in bf16, too.
class TrainingStep {
 public:
  /// Keeps references to all three. Throws if the optimizer is not for the network's parameters. A captured step is
  /// captured once for each batch size, and replayed.
  TrainingStep(const models::Network& network, optim::Optimizer& optimizer, Generator& generator, StepMode mode);
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;
  /// {loss, predictions} of the batch by the parameters before the update; if captured, valid until the next step.
  TensorList operator()(const Tensor& images, const Tensor& labels);
  /// The step for these images and labels as a program, captured whatever the mode is. Of images in bf16 it reads the
  /// copies of the parameters, which its own updates write: what else writes to a parameter is seen only after the next
  /// call of this or of the step.
  Program program(const Tensor& images, const Tensor& labels);

 private:
  void prepare(DType images);
  TensorList eager(const Tensor& images, const Tensor& labels);
  const models::Network& network_;
  optim::Optimizer& optimizer_;
  Generator& generator_;
  StepMode mode_;
  std::unique_ptr<models::RoundedParameters> rounded_;
  StaticFunction captured_;
};

}  // namespace plumb::training
