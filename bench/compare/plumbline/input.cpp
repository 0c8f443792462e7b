#include "bench/compare/plumbline/input.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/context.h"
#include "data/loader.h"
#include "dispatch/policy.h"
#include "models/network.h"
#include "ops/convert.h"
#include "optim/make.h"
#include "train/fastest_layout.h"
#include "train/training_step.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

// The bytes come as whole numbers, like all that every side reads.
datasets::Dataset data_set(const Tensor& pixels, const Tensor& targets, int64_t classes) {
  const Shape& all = pixels.shape();
  auto data = datasets::Dataset::make("bytes", datasets::Split::kTrain, Shape{all[1], all[2], all[3]}, classes, all[0]);
  std::ranges::transform(pixels.data<int64_t>(), data.pixels.begin(),
                         [](int64_t p) { return static_cast<uint8_t>(p); });
  std::ranges::copy(targets.data<int64_t>(), data.labels.begin());
  return data;
}

class InputWork final : public Work {
 public:
  InputWork(const json& problem, const Tensors& tensors, const Mode& mode)
      : way_(mode.input), policy_(mode.policy), network_(models::make_network(problem.at("op").get<std::string>())) {
    const PolicyScope policy(policy_);
    const int64_t batch = problem.at("batch");
    for (const models::NamedTensor& p : network_->parameters()) Tensor(p.tensor).copy_from(tensors.at(p.name));
    layout_ = mode.layout == "auto" ? training::fastest_layout(*network_, DType::kF32, batch)
                                    : layout_from_string(mode.layout);
    data_ = data_set(tensors.at("pixels"), tensors.at("targets"), network_->classes());
    options_ = {.batch = batch,
                .drop_last = true,
                .augmentation = datasets::Augmentation::cifar(),
                .normalization = datasets::Normalization::imagenet(),
                .layout = layout_,
                .workers = way_ == "overlapped" ? 1 : 0,
                .device = detail::ctx.policy.device};
    loader_.emplace(data_, options_);
    optim::Settings settings;
    settings.learning_rate = problem.at("learning_rate").get<double>();
    optimizer_ = optim::make(problem.at("optimizer").get<std::string>(), network_->trainable(), settings);
    const auto execution = mode.captured ? training::StepMode::kCaptured : training::StepMode::kEager;
    step_.emplace(*network_, *optimizer_, generator_, execution);
    next();
  }

  void step() override {
    const PolicyScope policy(policy_);
    if (way_ != "step") next();
    if (way_ != "augment") loss_ = (*step_)(batch_.images, batch_.labels)[0].item();
  }

  Tensors results() override {
    datasets::LoaderOptions plain = options_;
    plain.shuffle = false;
    plain.augmentation = {};
    plain.workers = 0;
    plain.layout = Layout::kNchw;
    plain.device = Device();
    datasets::Loader loader(data_, plain);
    datasets::Batch first;
    loader.start_epoch(0);
    loader.next(first);
    return {{"images", first.images.clone()}};
  }

  json facts() const override { return {{"layout", to_string(layout_)}}; }

 private:
  void next() {
    if (epoch_ >= 0 && loader_->next(batch_)) return;
    loader_->start_epoch(++epoch_);
    PLUMB_CHECK(loader_->next(batch_), "input: a batch of {} is larger than the set of {} images; use a smaller one",
                options_.batch, data_.size());
  }

  std::string way_;
  Policy policy_;
  std::unique_ptr<models::Network> network_;
  Layout layout_ = Layout::kNchw;
  datasets::Dataset data_;
  datasets::LoaderOptions options_;
  std::optional<datasets::Loader> loader_;
  datasets::Batch batch_;
  int64_t epoch_ = -1;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Generator generator_{0};
  std::optional<training::TrainingStep> step_;
  double loss_ = 0;
};

}  // namespace

std::unique_ptr<Work> prepare_input(const json& problem, const Tensors& tensors, const Mode& mode) {
  return std::make_unique<InputWork>(problem, tensors, mode);
}

}  // namespace plumb::compare
