#include "bench/compare/plumbline/work.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/compare/plumbline/input.h"
#include "bench/compare/plumbline/update.h"
#include "core/context.h"
#include "core/memory.h"
#include "dispatch/policy.h"
#include "graph/program.h"
#include "models/network.h"
#include "ops/convert.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "optim/make.h"
#include "train/fastest_layout.h"
#include "train/training_step.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

DType dtype_of(const json& problem, const Mode& mode) {
  return mode.is_f64 ? DType::kF64 : dtype_from_string(problem.at("dtype").get<std::string>());
}

class OpWork final : public Work {
 public:
  OpWork(const json& problem, const Tensors& tensors, const Mode& mode)
      : node_(problem.at("nodes").at(0)),
        output_(problem.at("output")),
        policy_(mode.policy),
        layout_(mode.layout),
        is_charged_(mode.is_charged) {
    const PolicyScope policy(policy_);
    const DType dtype = dtype_of(problem, mode);
    const auto f32_inputs = problem.at("f32_inputs").get<std::vector<std::string>>();
    for (const auto& [name, x] : tensors) {
      const bool stays = dtype == DType::kBf16 && std::ranges::count(f32_inputs, name);
      inputs_[name] = there(x, name, stays ? DType::kF32 : dtype);
    }
    if (inputs_.contains("dy")) dy_ = inputs_.extract("dy").mapped();
    if (problem.at("direction") != "forward") {
      for (const std::string name : problem.at("gradients")) {
        gradients_.push_back(name);
        wanted_.push_back(inputs_.at(name).require_grad());
      }
      const NoGrad none;
      dy_ = to(dy_, output().dtype());  // a loss is f32, whatever x is
    }
    if (!mode.captured) return;
    program_.emplace(capture([this] { return work(); }));
  }

  // What has a gradient is another in each step of a training: no pack of it is kept from one to the next.
  void step() override {
    const PolicyScope policy(policy_);
    for (const Tensor& x : wanted_) x.value->bump_version();
    if (program_) {
      program_->run();
    } else {
      work();
    }
  }

  Tensors results() override {
    const PolicyScope policy(policy_);
    if (program_) program_->run();
    const TensorList all = program_ ? program_->outputs() : work();
    Tensors named{{output_, all[0].detached()}};
    for (size_t i = 0; i < gradients_.size(); ++i) named["d" + gradients_[i]] = all[i + 1];
    return named;
  }

  json facts() const override { return {{"layout", layout_}}; }

 private:
  // A product's matrices are no images, however many there are.
  bool is_image(const Tensor& x, const std::string& name) const {
    return x.rank() == 4 && name != "w" && node_.at("op") != "matmul";
  }

  // Images have the layout of the mode, unless every step is charged with their conversion; filters and what has
  // another rank are row-major.
  Tensor there(const Tensor& x, const std::string& name, DType dtype) const {
    const Tensor moved = to(x, detail::ctx.policy.device);
    const Tensor laid = is_image(x, name) && !is_charged_ ? to(moved, layout_from_string(layout_)) : moved;
    return is_floating(x.dtype()) ? to(laid, dtype) : laid;
  }

  Tensor output() const {
    if (!is_charged_) return call(node_.at("op"), inputs_, node_.at("attributes"));
    Tensors there = inputs_;
    for (auto& [name, x] : there) {
      if (is_image(x, name)) x = to(x, layout_from_string(layout_));
    }
    const Tensor y = call(node_.at("op"), there, node_.at("attributes"));
    return y.rank() == 4 ? to(y, Layout::kNchw) : y;
  }

  TensorList work() {
    if (gradients_.empty()) {
      const NoGrad none;
      return {output()};
    }
    const Tensor y = output();
    TensorList all = grad(y, wanted_, dy_);
    all.insert(all.begin(), y.detached());
    return all;
  }

  json node_;
  std::string output_;
  Policy policy_;
  std::string layout_;
  bool is_charged_;
  Tensors inputs_;
  Tensor dy_;
  std::vector<std::string> gradients_;
  TensorList wanted_;
  std::optional<Program> program_;
};

class NetworkWork final : public Work {
 public:
  NetworkWork(const json& problem, const Tensors& tensors, const Mode& mode)
      : output_(problem.at("output")),
        policy_(mode.policy),
        network_(models::make_network(problem.at("op").get<std::string>(), 0, mode.convention)) {
    const PolicyScope policy(policy_);
    for (const auto* list : {&network_->parameters(), &network_->buffers()}) {
      for (const models::NamedTensor& t : *list) Tensor(t.tensor).copy_from(tensors.at(t.name));
    }
    dtype_ = dtype_of(problem, mode);
    const int64_t batch = problem.at("batch");
    layout_ =
        mode.layout == "auto" ? training::fastest_layout(*network_, dtype_, batch) : layout_from_string(mode.layout);
    feed(tensors.at("images"), tensors.at("labels"));
    if (problem.at("direction") == "train") {
      // The reference of a framework is of the same network, updated by that framework's formulas.
      const std::string formulas = problem.value("formulas", to_string(mode.convention));
      optim::Settings settings{.convention = convention_from_string(formulas)};
      settings.learning_rate = problem.at("learning_rate").get<double>();
      optimizer_ = optim::make(problem.at("optimizer").get<std::string>(), network_->trainable(), settings);
      steps_ = problem.value("steps", 1);
      const int reads = mode.reads == 0 ? steps_ : mode.reads;
      PLUMB_CHECK(reads > 0 && steps_ % reads == 0, "the loss cannot be read {} times in {} steps; use a divisor of {}",
                  reads, steps_, steps_);
      read_every_ = steps_ / reads;
      const auto execution = mode.captured ? training::StepMode::kCaptured : training::StepMode::kEager;
      step_.emplace(*network_, *optimizer_, generator_, execution);
    } else {
      images_ = images();
      if (dtype_ == DType::kBf16) rounded_.emplace(*network_);
      if (mode.captured) program_.emplace(capture([this] { return logits(); }));
    }
  }

  void step() override {
    const PolicyScope policy(policy_);
    if (step_) {
      for (int i = 1; i <= steps_; ++i) {
        const Tensor loss = (*step_)(images(), labels_)[0];
        if (i % read_every_ == 0) losses_.push_back(loss.item());
      }
    } else if (program_) {
      program_->run();
    } else {
      logits();
    }
  }

  Tensors results() override {
    const PolicyScope policy(policy_);
    if (program_) program_->run();
    if (!step_) return {{output_, program_ ? program_->outputs()[0] : logits()}};
    models::ForwardContext pass = models::ForwardContext::training(generator_);
    std::optional<models::RoundedParameters> rounded;  // as the step has them
    if (dtype_ == DType::kBf16) pass.rounded = &rounded.emplace(*network_);
    const TensorList all = training::forward_backward(*network_, pass, images(), labels_);
    Tensors named{{output_, all[0]}};
    for (size_t i = 0; i < network_->parameters().size(); ++i)
      named["d" + network_->parameters()[i].name] = to(all[i + 2], DType::kF32);
    return named;
  }

  const std::vector<double>& losses() const override { return step_ ? losses_ : Work::losses(); }

  Tensors weights() const override {
    if (!step_) return Work::weights();
    Tensors named;
    for (const models::NamedTensor& p : network_->parameters()) named[p.name] = p.tensor.detached();
    return named;
  }

  void feed(const Tensor& images, const Tensor& labels) override {
    images_ = to(to(images, network_->device()), layout_);
    labels_ = to(labels, network_->device());
  }

  int64_t batch() const override { return step_ ? images_.shape()[0] : 0; }

  Tensor predicted() override {
    const PolicyScope policy(policy_);
    return argmax(logits(), {1});
  }

  json facts() const override { return {{"layout", to_string(layout_)}}; }

 private:
  // In the type of the step, which rounds them, as that of every side does.
  Tensor images() const { return to(images_, dtype_); }
  Tensor logits() {
    const NoGrad none;
    models::ForwardContext pass;
    if (rounded_) pass.rounded = &*rounded_;
    return to(network_->forward(images(), pass), DType::kF32);
  }

  std::string output_;
  Policy policy_;
  std::unique_ptr<models::Network> network_;
  DType dtype_ = DType::kF32;
  Layout layout_ = Layout::kNchw;
  Tensor images_, labels_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Generator generator_{0};
  std::optional<training::TrainingStep> step_;
  std::optional<Program> program_;
  std::optional<models::RoundedParameters> rounded_;  // of a forward pass
  std::vector<double> losses_;                        // that were read
  int steps_ = 1, read_every_ = 1;                    // of a call
};

}  // namespace

std::unique_ptr<Work> prepare(const json& problem, Tensors tensors, const Mode& mode) {
  if (problem.at("direction") == "update") return prepare_update(problem, tensors, mode);
  if (problem.at("direction") == "input") return prepare_input(problem, tensors, mode);
  if (mode.layout == "blocked") return prepare_blocked(problem, tensors, mode);
  if (problem.at("kind") == "op") return std::make_unique<OpWork>(problem, tensors, mode);
  return std::make_unique<NetworkWork>(problem, tensors, mode);
}

}  // namespace plumb::compare
