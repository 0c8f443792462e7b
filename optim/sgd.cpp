#include "optim/sgd.h"

#include <limits>

namespace plumb::optim {
namespace {

const Sgd::Options& checked(const Sgd::Options& o) {
  detail::check_nonnegative("sgd", "momentum", o.momentum);
  detail::check_nonnegative("sgd", "dampening", o.dampening);
  detail::check_weight_decay("sgd", o.weight_decay, o.convention);
  PLUMB_CHECK(o.momentum <= 1 || o.convention != Convention::kKeras, "sgd: momentum is {}; in {} it is at most 1",
              o.momentum, o.convention);
  PLUMB_CHECK(o.dampening == 0 || o.convention == Convention::kPyTorch,
              "sgd: dampening is {}, and {} has none; set it to 0", o.dampening, o.convention);
  PLUMB_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
              "sgd: nesterov with momentum {} and dampening {}; it needs a momentum above 0 and no dampening",
              o.momentum, o.dampening);
  return o;
}

}  // namespace

Sgd::Options Sgd::Options::defaults(Convention convention) {
  Options o{.convention = convention};
  if (convention == Convention::kKeras) o.learning_rate = 1e-2;
  if (convention == Convention::kTensorFlow1) o.learning_rate = std::numeric_limits<double>::quiet_NaN();
  return o;
}

Sgd::Sgd(std::span<const Tensor> parameters, const Options& options)
    : Optimizer("sgd", parameters, checked(options).learning_rate,
                options.momentum > 0 ? std::vector<State>{{"velocity"}} : std::vector<State>{}),
      params_{options.momentum, options.dampening, options.weight_decay, options.convention, options.nesterov} {}

void Sgd::apply(const Given& given) { update_by<SgdUpdate>(params_, given); }

}  // namespace plumb::optim
