#include "optim/adam.h"

namespace plumb::optim {
namespace {

void refuse_tensorflow1(Convention convention) {
  PLUMB_CHECK(convention != Convention::kTensorFlow1, "adamw: tensorflow1 has no such optimizer; use pytorch or keras");
}

const Adam::Options& checked(const char* name, const Adam::Options& o) {
  detail::check_fraction(name, "beta1", o.beta1);
  detail::check_fraction(name, "beta2", o.beta2);
  detail::check_nonnegative(name, "epsilon", o.epsilon);
  detail::check_weight_decay(name, o.weight_decay, o.convention);
  return o;
}

Adam::Options as_adam(const AdamW::Options& o) {
  refuse_tensorflow1(o.convention);  // before its weight decay is found wrong, which 0 would not mend
  return {o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay, o.convention};
}

}  // namespace

Adam::Options Adam::Options::defaults(Convention convention) {
  return {.epsilon = convention == Convention::kKeras ? 1e-7 : 1e-8, .convention = convention};
}

Adam::Adam(std::span<const Tensor> parameters, const Options& options)
    : Adam("adam", parameters, options, options.convention == Convention::kKeras) {}

Adam::Adam(const char* name, std::span<const Tensor> parameters, const Options& options, bool decoupled)
    : Optimizer(name, parameters, checked(name, options).learning_rate, std::vector<State>{{"mean"}, {"mean_square"}}),
      params_{options.beta1, options.beta2, options.epsilon, options.weight_decay, options.convention, decoupled} {}

void Adam::apply(const Given& given) { update_by<AdamUpdate>(params_, given); }

AdamW::Options AdamW::Options::defaults(Convention convention) {
  refuse_tensorflow1(convention);
  const bool keras = convention == Convention::kKeras;
  return {.epsilon = keras ? 1e-7 : 1e-8, .weight_decay = keras ? 4e-3 : 1e-2, .convention = convention};
}

AdamW::AdamW(std::span<const Tensor> parameters, const Options& o) : Adam("adamw", parameters, as_adam(o), true) {}

}  // namespace plumb::optim
