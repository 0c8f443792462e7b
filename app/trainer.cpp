#include "app/trainer.h"

#include <algorithm>

#include "app/data_source.h"
#include "app/evaluation.h"
#include "app/values.h"
#include "core/stopwatch.h"
#include "models/weights.h"
#include "optim/make.h"

namespace plumb::app {
namespace {

datasets::LoaderOptions loader_options(const TrainConfig& c, Layout layout, bool train) {
  datasets::LoaderOptions o;
  o.batch = c.batch;
  o.shuffle = train;
  o.dtype = precision_of(c.dtype).activations;
  o.layout = layout;
  o.device = device_from_string(c.device);
  o.seed = c.seed;
  o.normalization = normalization_of(c.model);
  if (train && c.augment) o.augmentation = datasets::Augmentation::cifar();
  return o;
}

}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainConfig& c, const models::Network& network) {
  optim::Settings settings;
  settings.convention = convention_from_string(c.convention);
  settings.learning_rate = c.learning_rate;
  settings.momentum = c.momentum;
  settings.weight_decay = c.weight_decay;
  return optim::make(c.optimizer, network.trainable(), settings);
}

Trainer::Trainer(const TrainConfig& config, Layout layout, std::unique_ptr<models::Network> network,
                 std::unique_ptr<optim::Optimizer> optimizer, const datasets::Dataset& train,
                 const datasets::Dataset& test)
    : network_(std::move(network)),
      generator_(config.seed),
      optimizer_(std::move(optimizer)),
      train_(train, loader_options(config, layout, true)),
      test_(test, loader_options(config, layout, false)),
      step_(*network_, *optimizer_, generator_, config.mode == "captured") {
  PLUMB_CHECK(train.image == network_->input(), "train: {} takes images {}, the data set {} has {}", config.model,
              network_->input(), train.name, train.image);
  PLUMB_CHECK(train.classes <= network_->classes(), "train: {} has {} classes, the data set {} has {}", config.model,
              network_->classes(), train.name, train.classes);
}

StepResult Trainer::step(const Tensor& images, const Tensor& labels) {
  const TensorList result = step_(images, labels);
  return {result[0].item(), count_correct(result[1], labels)};
}

EpochResult Trainer::run_epoch(int64_t epoch, const OnStep& on_step) {
  EpochResult r;
  datasets::Batch batch;
  int64_t seen = 0, correct = 0, number = 0;
  const detail::Stopwatch epoch_watch;
  train_.start_epoch(epoch);
  detail::Stopwatch step_watch;
  while (train_.next(batch)) {
    const StepResult s = step(batch.images, batch.labels);
    r.loss += s.loss * static_cast<double>(batch.count);
    correct += s.correct;
    seen += batch.count;
    on_step(number++, train_.batches(), step_watch.ms(), s);
    step_watch = {};
  }
  r.seconds = epoch_watch.seconds();
  r.loss /= static_cast<double>(seen);
  r.train_accuracy = static_cast<double>(correct) / static_cast<double>(seen);
  const Evaluation e = evaluate(*network_, test_);
  r.test_loss = e.loss;
  r.test_accuracy = static_cast<double>(e.correct) / static_cast<double>(std::max<int64_t>(e.total, 1));
  return r;
}

std::vector<models::NamedTensor> Trainer::state() const {
  std::vector<models::NamedTensor> all;
  for (const auto* list : {&network_->parameters(), &network_->buffers()}) {
    for (const auto& t : *list) all.push_back({std::string(models::kCheckpointModel) + t.name, t.tensor.detached()});
  }
  for (const auto& [name, tensor] : optimizer_->state()) all.push_back({"optimizer." + name, tensor});
  all.push_back({"generator", generator_.state});
  return all;
}

}  // namespace plumb::app
