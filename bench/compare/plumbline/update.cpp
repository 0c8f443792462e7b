#include "bench/compare/plumbline/update.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/context.h"
#include "dispatch/policy.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "optim/adam.h"
#include "optim/make.h"
#include "optim/rmsprop.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

// The formulas of optim/ as ops, each of which writes its result to memory. States are new tensors in every step;
// parameters stay where they are, as a network needs them to.
class Chain {
 public:
  Chain(optim::Kind kind, Convention convention, double rate, const TensorList& parameters)
      : kind_(kind), convention_(convention), rate_(rate), w_(parameters) {
    const bool starts_at_one = kind == optim::Kind::kRmsProp && convention == Convention::kTensorFlow1;
    for (const Tensor& w : w_) {
      mean_.push_back(kind == optim::Kind::kAdam ? zeros_like(w) : Tensor());
      square_.push_back(kind == optim::Kind::kSgd ? Tensor() : starts_at_one ? ones_like(w) : zeros_like(w));
    }
  }

  void step(const TensorList& gradients) {
    const NoGrad none;
    ++steps_;
    for (size_t i = 0; i < w_.size(); ++i) w_[i].copy_from(w_[i] - change(i, gradients[i]));
  }

 private:
  Tensor change(size_t i, const Tensor& g) {
    switch (kind_) {
      case optim::Kind::kSgd: return rate_ * g;
      case optim::Kind::kAdam: return adam(mean_[i], square_[i], g);
      case optim::Kind::kRmsProp: return rms_prop(square_[i], g);
      case optim::Kind::kAdamW: break;
    }
    fail("a chain of ops for {} is not there; use sgd, adam or rmsprop", kind_);
  }

  Tensor adam(Tensor& m, Tensor& v, const Tensor& g) const {
    const auto o = optim::Adam::Options::defaults(convention_);
    const double c1 = 1 - std::pow(o.beta1, steps_), root = std::sqrt(1 - std::pow(o.beta2, steps_));
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * square(g);
    if (convention_ == Convention::kPyTorch) return rate_ / c1 * m / (sqrt(v) / root + o.epsilon);
    return rate_ * root / c1 * m / (sqrt(v) + o.epsilon);
  }

  Tensor rms_prop(Tensor& v, const Tensor& g) const {
    const auto o = optim::RmsProp::Options::defaults(convention_);
    v = o.rho * v + (1 - o.rho) * square(g);
    return convention_ == Convention::kPyTorch ? rate_ * g / (sqrt(v) + o.epsilon) : rate_ * g / sqrt(v + o.epsilon);
  }

  optim::Kind kind_;
  Convention convention_;
  double rate_;
  TensorList w_, mean_, square_;
  int steps_ = 0;
};

class UpdateWork final : public Work {
 public:
  UpdateWork(const json& problem, const Tensors& tensors, const Mode& mode) : policy_(mode.policy) {
    const PolicyScope policy(policy_);
    const json& attributes = problem.at("nodes").at(0).at("attributes");
    const DType dtype = mode.is_f64 ? DType::kF64 : DType::kF32;
    const Device device = detail::ctx.policy.device;
    steps_ = attributes.at("steps");
    for (const std::string name : problem.at("gradients")) {
      names_.push_back(name);
      parameters_.push_back(to(to(tensors.at(name), device), dtype).require_grad());
      gradients_.push_back(to(to(tensors.at("d" + name), device), dtype));
    }
    const auto kind = optim::kind_from_string(problem.at("optimizer").get<std::string>());
    const double rate = problem.at("learning_rate");
    const Convention convention = convention_from_string(attributes.at("convention").get<std::string>());
    const optim::Settings settings{.convention = convention, .learning_rate = rate};
    if (mode.update == "fused") {
      optimizers_.push_back(optim::make(kind, parameters_, settings));
    } else if (mode.update == "per_tensor") {
      for (const Tensor& w : parameters_) optimizers_.push_back(optim::make(kind, {&w, 1}, settings));
    } else {
      TensorList plain;
      for (const Tensor& w : parameters_) plain.push_back(w.detached());
      chain_.emplace(kind, convention, rate, plain);
    }
  }

  void step() override {
    const PolicyScope policy(policy_);
    if (chain_) return chain_->step(gradients_);
    if (optimizers_.size() == 1) return optimizers_[0]->step(gradients_);
    for (size_t i = 0; i < optimizers_.size(); ++i) optimizers_[i]->step({&gradients_[i], 1});
  }

  Tensors results() override {
    for (int i = 0; i < steps_; ++i) step();
    Tensors named;
    for (size_t i = 0; i < names_.size(); ++i) named[names_[i]] = parameters_[i].detached();
    return named;
  }

  json facts() const override { return json::object(); }

 private:
  Policy policy_;
  int steps_ = 0;
  std::vector<std::string> names_;
  TensorList parameters_, gradients_;
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;
  std::optional<Chain> chain_;
};

}  // namespace

std::unique_ptr<Work> prepare_update(const json& problem, const Tensors& tensors, const Mode& mode) {
  return std::make_unique<UpdateWork>(problem, tensors, mode);
}

}  // namespace plumb::compare
