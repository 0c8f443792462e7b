// Training a network: one step, one epoch, the state between epochs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/train_step.h"
#include "data/loader.h"
#include "models/network.h"
#include "optim/optimizer.h"

namespace plumb::app {

/// What `plumb train` was asked for.
struct TrainConfig {
  std::string model = "alexnet";
  std::string data = "synthetic";  ///< a folder, or "synthetic"
  std::string device = "cpu";
  int64_t batch = 250;
  std::string optimizer = "sgd";
  std::optional<double> learning_rate;  ///< none: the convention's own
  int64_t epochs = 30;
  std::optional<double> momentum;
  std::optional<double> weight_decay;
  std::string convention = "pytorch";
  std::string layout = "auto";
  std::string algorithm = "measured";
  std::string dtype = "f32";
  std::string mode = "eager";  ///< or "captured": steps are recorded once and replayed
  uint64_t seed = 0;
  int64_t limit = 0;  ///< images of each split; 0: all
  bool augment = false;
  bool check_nan = false;
  std::string init, checkpoint, json, csv, profile;
  bool resume = false;
};

/// The optimizer that was asked for, of the parameters of the network. Throws where optim::make does.
std::unique_ptr<optim::Optimizer> make_optimizer(const TrainConfig& config, const models::Network& network);

struct StepResult {
  double loss = 0;
  int64_t correct = 0;
};
struct EpochResult {
  double seconds = 0;  ///< of training, without the evaluation
  double loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = 0;
};

class Trainer {
 public:
  /// `layout` is settled by then; the optimizer is of the network's parameters. Keeps references to both splits.
  Trainer(const TrainConfig& config, Layout layout, std::unique_ptr<models::Network> network,
          std::unique_ptr<optim::Optimizer> optimizer, const datasets::Dataset& train, const datasets::Dataset& test);

  /// Called after every step with its number in the epoch and how long it took.
  using OnStep = std::function<void(int64_t step, int64_t steps, double ms, const StepResult&)>;
  /// Trains through epoch number `epoch` (from 0) and evaluates on the test split.
  EpochResult run_epoch(int64_t epoch, const OnStep& on_step);
  StepResult step(const Tensor& images, const Tensor& labels);

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
  TrainStep step_;
};

}  // namespace plumb::app
