#include "optim/make.h"

#include <cmath>

#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace plumb::optim {
namespace {

template <class T>
std::unique_ptr<Optimizer> made(std::string_view name, std::span<const Tensor> parameters, const Settings& s) {
  typename T::Options o = T::Options::defaults(s.convention);
  o.learning_rate = s.learning_rate.value_or(o.learning_rate);
  PLUMB_CHECK(!std::isnan(o.learning_rate) || s.learning_rate, "{}: {} has no default learning rate; give one", name,
              s.convention);
  o.weight_decay = s.weight_decay.value_or(o.weight_decay);
  if constexpr (requires { o.momentum; }) {
    o.momentum = s.momentum.value_or(o.momentum);
  } else {
    PLUMB_CHECK(!s.momentum, "{}: it has no momentum to set; use sgd or rmsprop, or leave it out", name);
  }
  return std::make_unique<T>(parameters, o);
}

}  // namespace

std::unique_ptr<Optimizer> make(std::string_view name, std::span<const Tensor> parameters, const Settings& settings) {
  if (name == "sgd") return made<Sgd>(name, parameters, settings);
  if (name == "adam") return made<Adam>(name, parameters, settings);
  if (name == "adamw") return made<AdamW>(name, parameters, settings);
  if (name == "rmsprop") return made<RmsProp>(name, parameters, settings);
  fail("optimizer \"{}\" is unknown; use sgd, adam, adamw or rmsprop", name);
}

}  // namespace plumb::optim
