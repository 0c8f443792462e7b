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

/// The settings of a Trainer.
struct TrainerOptions {
  int64_t batch = 250;  ///< images per step
  Precision precision = Precision::kF32;
  Layout layout = Layout::kNchw;  ///< of images and activations
  StepMode mode = StepMode::kEager;
  uint64_t seed = 0;  ///< for the order of images, augmentation and dropout
  /// Results are read every `log_every` steps, and at the end of an epoch; in between, the host does not wait for a
  /// device. Until then, the device keeps the results and labels of these steps.
  int64_t log_every = 1;
  datasets::Augmentation augmentation{};  ///< for the training split
  datasets::Normalization normalization{};
};

/// A completed step.
struct StepReport {
  int64_t step = 0, steps = 0;   ///< its index in the epoch, and the number of steps
  double ms = 0;                 ///< since the previous step; on a device, if not read, only until it is launched
  std::optional<double> loss{};  ///< of this step, if it was read
};
/// An epoch. Training's means are over all its images, with the same bits for every TrainerOptions::log_every.
struct EpochResult {
  double seconds = 0;  ///< of training, without the evaluation
  double loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = 0;
};

/// Trains a network on one split of a data set and evaluates it on another, epoch by epoch.
class Trainer {
 public:
  /// Keeps references to both splits, which must outlive it. Throws if the optimizer is not for the network's
  /// parameters, if the splits do not fit the network, and whenever datasets::Loader does.
  Trainer(std::unique_ptr<models::Network> network, std::unique_ptr<optim::Optimizer> optimizer,
          const datasets::Dataset& train, const datasets::Dataset& test, const TrainerOptions& options);
  Trainer(std::unique_ptr<models::Network>, std::unique_ptr<optim::Optimizer>, datasets::Dataset&&,
          const datasets::Dataset&, const TrainerOptions&) = delete;
  Trainer(std::unique_ptr<models::Network>, std::unique_ptr<optim::Optimizer>, const datasets::Dataset&,
          datasets::Dataset&&, const TrainerOptions&) = delete;

  using OnStep = std::function<void(const StepReport&)>;
  /// Trains epoch number `epoch` (from 0) and evaluates on the test split. `on_step` may be empty.
  EpochResult run_epoch(int64_t epoch, const OnStep& on_step = {});

  /// The number of training steps in an epoch.
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
