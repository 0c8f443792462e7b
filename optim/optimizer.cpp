#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/convert.h"
#include "ops/fill.h"

namespace plumb::optim {
namespace {

void check_parameters(const char* name, std::span<const Tensor> parameters) {
  PLUMB_CHECK(!parameters.empty(), "{}: there are no parameters", name);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& w = parameters[i];
    PLUMB_CHECK(w, "{}: parameter {} is an empty tensor", name, i);
    PLUMB_CHECK(!w.value->is_symbolic(), "{}: parameter {} {} comes from a captured step; make it outside of it", name,
                i, w.spec());
    PLUMB_CHECK(w.dtype() == DType::kF32 || w.dtype() == DType::kF64 || w.dtype() == DType::kBf16,
                "{}: parameter {} is {}; parameters are f32, f64 or bf16", name, i, w.spec());
    PLUMB_CHECK(w.dtype() == parameters[0].dtype(),
                "{}: parameter {} is {} and parameter 0 is {}; use an optimizer each", name, i, w.spec(),
                parameters[0].dtype());
    PLUMB_CHECK(w.device() == parameters[0].device(),
                "{}: parameter {} is on {} and parameter 0 on {}; use an optimizer each", name, i, w.device(),
                parameters[0].device());
    PLUMB_CHECK(w.requires_grad(),
                "{}: parameter {} {} needs no gradient; call require_grad() on this handle, before it is copied", name,
                i, w.spec());
    for (size_t j = 0; j < i; ++j) {
      PLUMB_CHECK(w.value->root() != parameters[j].value->root(),
                  "{}: parameter {} {} is parameter {} again; name it once", name, i, w.spec(), j);
    }
  }
}

void check_rate(const char* name, double rate) {
  PLUMB_CHECK(!std::isnan(rate),
              "{}: the learning rate is not a number; set learning_rate (tensorflow1 has no default)", name);
  detail::check_nonnegative(name, "the learning rate", rate);
}

}  // namespace

Optimizer::Optimizer(const char* name, std::span<const Tensor> parameters, double learning_rate,
                     std::span<const State> states)
    : name_(name), kinds_(states.begin(), states.end()) {
  PLUMB_CHECK(!detail::ctx.recorder, "{}: an optimizer is made while a step is captured; make it before", name);
  check_parameters(name, parameters);
  check_rate(name, learning_rate);
  const MemoryScope memory(MemoryClass::kState);
  const DeviceScope on(parameters[0].device());
  const bool has_masters = parameters[0].dtype() == DType::kBf16;
  const DType computed = has_masters ? DType::kF32 : parameters[0].dtype();
  rate_ = full(TensorSpec({}, computed), learning_rate);
  step_ = zeros(TensorSpec({}, DType::kI64));
  step_of_updates_ = detail::Value::alias(step_.value, step_.spec());
  counted_.by_others = step_.value->version();
  for (const Tensor& w : parameters) parameters_.push_back(w);
  if (has_masters) {
    const NoGrad no_tape;
    for (const Tensor& w : parameters_) masters_.push_back(to(w, computed));
  }
  for (const State& s : kinds_) {
    for (const Tensor& w : parameters_) states_.push_back(full(TensorSpec(w.shape(), computed, w.layout()), s.initial));
  }
}

void Optimizer::check_given(const Given& given) const {
  const auto& [gradients, copies] = given;
  PLUMB_CHECK(gradients.size() == parameters_.size(), "{}: there are {} gradients for {} parameters", name_,
              gradients.size(), parameters_.size());
  PLUMB_CHECK(copies.empty() || copies.size() == parameters_.size(), "{}: there are {} copies for {} parameters", name_,
              copies.size(), parameters_.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const TensorSpec& own = parameters_[i].spec();
    const bool has_copy = !copies.empty() && copies[i];
    PLUMB_CHECK(gradients[i],
                "{}: the gradient of parameter {} is an empty tensor; leave out parameters that are not used", name_,
                i);
    if (!has_copy) {
      PLUMB_CHECK(gradients[i].spec() == own, "{}: the gradient of parameter {} is {}, the parameter is {}", name_, i,
                  gradients[i].spec(), own);
      continue;
    }
    PLUMB_CHECK(own.dtype == DType::kF32 && copies[i].spec() == own.with(DType::kBf16) &&
                    copies[i].device() == parameters_[i].device(),
                "{}: the copy of parameter {} is {} on {}, the parameter is {} on {}; copies are of f32 parameters, in "
                "bf16",
                name_, i, copies[i].spec(), copies[i].device(), own, parameters_[i].device());
    PLUMB_CHECK(gradients[i].spec() == copies[i].spec(), "{}: the gradient of parameter {} is {}, its copy is {}",
                name_, i, gradients[i].spec(), copies[i].spec());
  }
}

void Optimizer::step(std::span<const Tensor> gradients, std::span<const Tensor> copies) {
  const Given given{gradients, copies};
  check_given(given);
  const NoGrad no_tape;
  const detail::Scoped<Phase> phase(detail::ctx.phase, Phase::kUpdate);
  try {
    apply(given);
  } catch (...) {
    step_.value->bump_version();  // whether it was a step is not known
    throw;
  }
}

void Optimizer::set_learning_rate(double rate) {
  check_rate(name_, rate);
  const auto write = [rate](Tensor& t) {
    if (t.dtype() == DType::kF32) {
      t.mutable_data<float>()[0] = static_cast<float>(rate);
    } else {
      t.mutable_data<double>()[0] = rate;
    }
  };
  if (rate_.device().is_cpu()) return write(rate_);
  Tensor fresh = Tensor::empty(rate_.spec(), MemoryClass::kState);
  write(fresh);
  rate_.copy_from(fresh);
}

int64_t Optimizer::steps() const {
  PLUMB_CHECK(!detail::ctx.recorder, "{}: steps() is asked while a step is captured; ask before, or after", name_);
  const uint32_t by_steps = step_of_updates_->own_writes(), by_others = step_.value->version() - by_steps;
  if (by_others == counted_.by_others) {
    counted_.steps += static_cast<uint32_t>(by_steps - counted_.by_steps);
  } else {
    const Tensor here = to(step_, Device{});
    counted_.steps = here.data<int64_t>()[0];
  }
  counted_.by_steps = by_steps;
  counted_.by_others = by_others;
  return counted_.steps;
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> named{{"learning_rate", rate_}, {"step", step_}};
  for (size_t i = 0; i < states_.size(); ++i) {
    const size_t n = parameters_.size();
    named.emplace_back(message("{}.{}", kinds_[i / n].name, i % n), states_[i]);
  }
  for (size_t i = 0; i < masters_.size(); ++i) named.emplace_back(message("master.{}", i), masters_[i]);
  return named;
}

detail::PoolVector<detail::In> Optimizer::inputs(const Given& given) const {
  detail::PoolVector<detail::In> in;
  in.reserve(2 + 3 * parameters_.size() + states_.size());
  in.push_back({rate_.value.get()});
  in.push_back({step_of_updates_.get()});
  const std::span<const Tensor> weights = masters_.empty() ? parameters() : masters_;
  const std::span<const Tensor> copies = masters_.empty() ? given.copies : parameters();
  const size_t n = parameters_.size();
  const auto add = [&](std::span<const Tensor> list) {  // those with copies first
    for (const bool has_copy : {true, false}) {
      for (size_t i = 0; i < list.size(); ++i) {
        if ((!copies.empty() && copies[i]) == has_copy) in.push_back({list[i].value.get()});
      }
    }
  };
  add(weights);
  for (size_t first = 0; first < states_.size(); first += n) add(std::span(states_).subspan(first, n));
  for (const Tensor& t : copies) {
    if (t) in.push_back({t.value.get()});
  }
  add(given.gradients);
  return in;
}

}  // namespace plumb::optim

namespace plumb::detail {

void check_nonnegative(const char* name, const char* what, double value) {
  PLUMB_CHECK(value >= 0 && value <= std::numeric_limits<float>::max(),
              "{}: {} is {}; use a finite number from 0 to {}", name, what, value, std::numeric_limits<float>::max());
}

void check_fraction(const char* name, const char* what, double value) {
  PLUMB_CHECK(value >= 0 && value < 1, "{}: {} is {}; use a number of at least 0 and less than 1", name, what, value);
}

void check_weight_decay(const char* name, double weight_decay, Convention convention) {
  check_nonnegative(name, "weight_decay", weight_decay);
  PLUMB_CHECK(weight_decay == 0 || convention != Convention::kTensorFlow1,
              "{}: weight_decay is {}, and tensorflow1 has none; set it to 0 or use another convention", name,
              weight_decay);
}

}  // namespace plumb::detail
