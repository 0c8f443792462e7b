#include "optim/rmsprop.h"

#include <limits>

namespace plumb::optim {
namespace {

const RmsProp::Options& checked(const RmsProp::Options& o) {
  detail::check_fraction("rmsprop", "rho", o.rho);
  detail::check_nonnegative("rmsprop", "epsilon", o.epsilon);
  detail::check_nonnegative("rmsprop", "momentum", o.momentum);
  detail::check_weight_decay("rmsprop", o.weight_decay, o.convention);
  return o;
}

}  // namespace

RmsProp::Options RmsProp::Options::defaults(Convention convention) {
  switch (convention) {
    case Convention::kPyTorch: return {};
    case Convention::kKeras: return {.learning_rate = 1e-3, .rho = 0.9, .epsilon = 1e-7, .convention = convention};
    case Convention::kTensorFlow1: break;
  }
  return {.learning_rate = std::numeric_limits<double>::quiet_NaN(),
          .rho = 0.9,
          .epsilon = 1e-10,
          .convention = convention};
}

RmsProp::RmsProp(std::span<const Tensor> parameters, const Options& options)
    : Optimizer(
          "rmsprop", parameters, checked(options).learning_rate,
          [&] {
            std::vector<State> states{{"mean_square", options.convention == Convention::kTensorFlow1 ? 1.0 : 0.0}};
            if (options.centered) states.push_back({"mean"});
            if (options.momentum > 0) states.push_back({"velocity"});
            return states;
          }()),
      params_{options.rho,          options.epsilon,    options.momentum,
              options.weight_decay, options.convention, options.centered} {}

void RmsProp::apply(const Given& given) { update_by<RmsPropUpdate>(params_, given); }

}  // namespace plumb::optim
