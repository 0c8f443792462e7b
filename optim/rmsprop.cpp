#include "optim/rmsprop.h"

#include <cmath>
#include <limits>

namespace plumb::optim {
namespace {

const RmsProp::Options& checked(const RmsProp::Options& o) {
  detail::check_option("rmsprop", "rho", o.rho, 0, 1);
  detail::check_option("rmsprop", "epsilon", o.epsilon, 0, HUGE_VAL);
  detail::check_option("rmsprop", "momentum", o.momentum, 0, HUGE_VAL);
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

void RmsProp::apply(std::span<const Tensor> gradients) { update_by<RmsPropUpdate>(params_, gradients); }

}  // namespace plumb::optim
