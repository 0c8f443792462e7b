#include "train/trainer.h"

#include <algorithm>

#include "core/stopwatch.h"
#include "models/weights.h"
#include "ops/concat.h"
#include "ops/convert.h"
#include "ops/reshape.h"
#include "train/evaluation.h"

namespace plumb::training {
namespace {

datasets::LoaderOptions loader_options(const TrainerOptions& t, Device device, bool train) {
  datasets::LoaderOptions o;
  o.batch = t.batch;
  o.shuffle = train;
  o.dtype = activations_of(t.precision);
  o.layout = t.layout;
  o.device = device;
  o.seed = t.seed;
  o.normalization = t.normalization;
  if (train) o.augmentation = t.augmentation;
  return o;
}

// Results of steps, kept on the device that computed them until they are read together.
class Unread {
 public:
  // `is_read_next`: the results are read before another step overwrites them, so they are not copied.
  void add(const TensorList& result, const datasets::Batch& batch, bool is_read_next) {
    const auto kept = [&](const Tensor& t) { return is_read_next ? t : t.clone(); };
    losses_.push_back(reshape(kept(result[0]), {1}));
    predictions_.push_back(kept(result[1]));
    labels_.push_back(kept(batch.labels));
    counts_.push_back(batch.count);
  }

  // Adds these results to the sums, waits, and returns the loss of the last step.
  double read() {
    const Tensor losses = to(concat(losses_, 0), Device{});
    for (size_t i = 0; i < counts_.size(); ++i) {
      last_ = losses.data<float>()[i];
      loss_ += last_ * static_cast<double>(counts_[i]);
      seen_ += counts_[i];
    }
    correct_ += count_correct(concat(predictions_, 0), concat(labels_, 0));
    for (TensorList* list : {&losses_, &predictions_, &labels_}) list->clear();
    counts_.clear();
    return last_;
  }

  double mean_loss() const { return loss_ / static_cast<double>(seen_); }
  double accuracy() const { return static_cast<double>(correct_) / static_cast<double>(seen_); }

 private:
  TensorList losses_, predictions_, labels_;
  std::vector<int64_t> counts_;
  double last_ = 0, loss_ = 0;
  int64_t correct_ = 0, seen_ = 0;
};

Generator generator_on(Device device, uint64_t seed) {
  const DeviceScope on(device);
  return Generator(seed);
}

}  // namespace

Trainer::Trainer(std::unique_ptr<models::Network> network, std::unique_ptr<optim::Optimizer> optimizer,
                 const datasets::Dataset& train, const datasets::Dataset& test, const TrainerOptions& options)
    : network_(std::move(network)),
      generator_(generator_on(network_->device(), options.seed)),
      optimizer_(std::move(optimizer)),
      train_(train, loader_options(options, network_->device(), true)),
      test_(test, loader_options(options, network_->device(), false)),
      step_(*network_, *optimizer_, generator_, options.mode),
      log_every_(options.log_every) {
  for (const datasets::Dataset* set : {&train, &test}) {
    PLUMB_CHECK(set->image == network_->input(), "train: {} takes images {}, the data set {} has {}", network_->name(),
                network_->input(), set->name, set->image);
    PLUMB_CHECK(set->classes <= network_->classes(), "train: {} has {} classes, the data set {} has {}",
                network_->name(), network_->classes(), set->name, set->classes);
  }
  PLUMB_CHECK(log_every_ >= 1, "train: results are to be read after every {} steps; use at least 1", log_every_);
}

EpochResult Trainer::run_epoch(int64_t epoch, const OnStep& on_step) {
  EpochResult r;
  datasets::Batch batch;
  Unread results;
  const detail::Stopwatch epoch_watch;
  train_.start_epoch(epoch);
  detail::Stopwatch step_watch;
  StepReport report{.steps = train_.batches()};
  for (; train_.next(batch); ++report.step) {
    const bool reads = (report.step + 1) % log_every_ == 0 || report.step + 1 == report.steps;
    results.add(step_(batch.images, batch.labels), batch, reads);
    report.loss.reset();
    if (reads) report.loss = results.read();
    report.ms = step_watch.ms();
    if (on_step) on_step(report);
    step_watch = {};
  }
  r.seconds = epoch_watch.seconds();
  r.loss = results.mean_loss();
  r.train_accuracy = results.accuracy();
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

}  // namespace plumb::training
