// Training a network: epochs, and the state between them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "../data/loader.h"
#include "precision.h"
#include "training_step.h"

namespace plumb::training {

/// How a Trainer goes about it.
struct TrainerOptions {
  int64_t batch = 250;  ///< images a step
  Precision precision = Precision::kF32;
  Layout layout = Layout::kNchw;  ///< of images and activations
  StepMode mode = StepMode::kEager;
  uint64_t seed = 0;  ///< of order, augmentation and dropout
  /// Results are read after every so many steps, and at the end of an epoch: on a device, steps between are not waited
  /// for. Meanwhile results and labels of so many batches are kept there.
  int64_t log_every = 1;
  datasets::Augmentation augmentation{};  ///< of the training split
  datasets::Normalization normalization{};
};

/// A step that was done.
struct StepReport {
  int64_t step = 0, steps = 0;   ///< its number in the epoch, from 0, and how many there are
  double ms = 0;                 ///< since the one before; on a device, of a step that was not read, of its launches
  std::optional<double> loss{};  ///< its own, if it was read
};
/// An epoch. Training's means are over all its images, whatever TrainerOptions::log_every is, to the bit.
struct EpochResult {
  double seconds = 0;  ///< of training, without the evaluation
  double loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = 0;
};

class Trainer {
 public:
  /// The optimizer is of the network's parameters. Keeps references to both splits. Throws where they are not for the
  /// network, and where datasets::Loader does.
  Trainer(std::unique_ptr<models::Network> network, std::unique_ptr<optim::Optimizer> optimizer,
          const datasets::Dataset& train, const datasets::Dataset& test, const TrainerOptions& options);

  using OnStep = std::function<void(const StepReport&)>;
  /// Trains through epoch number `epoch` (from 0) and evaluates on the test split. `on_step` may be empty.
  EpochResult run_epoch(int64_t epoch, const OnStep& on_step = {});

  /// Steps of training in an epoch.
  int64_t steps() const { return train_.batches(); }
  models::Network& network() { return *network_; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  /// All tensors that a checkpoint holds: "model.…", "optimizer.…", "generator".
  std::vector<models::NamedTensor> state() const;

 private:
  std::unique_ptr<models::Network> network_;
  Generator generator_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  datasets::Loader train_, test_;
  TrainingStep step_;
  int64_t log_every_;
};

}  // namespace plumb::training
