#include "optim/make.h"

#include <cmath>

#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace plumb::optim {
namespace {

template <class T>
std::unique_ptr<Optimizer> made(Kind kind, std::span<const Tensor> parameters, const Settings& s) {
  typename T::Options o = T::Options::defaults(s.convention);
  o.learning_rate = s.learning_rate.value_or(o.learning_rate);
  PLUMB_CHECK(!std::isnan(o.learning_rate) || s.learning_rate, "{}: {} has no default learning rate; give one", kind,
              s.convention);
  o.weight_decay = s.weight_decay.value_or(o.weight_decay);
  if constexpr (requires { o.momentum; }) {
    o.momentum = s.momentum.value_or(o.momentum);
  } else {
    PLUMB_CHECK(!s.momentum, "{}: it has no momentum to set; use sgd or rmsprop, or leave it out", kind);
  }
  return std::make_unique<T>(parameters, o);
}

}  // namespace

const char* to_string(Kind k) {
  switch (k) {
    case Kind::kSgd: return "sgd";
    case Kind::kAdam: return "adam";
    case Kind::kAdamW: return "adamw";
    case Kind::kRmsProp: return "rmsprop";
  }
  fail("optimizer {} is unknown", static_cast<int>(k));
}

Kind kind_from_string(std::string_view name) {
  for (const Kind k : kKinds) {
    if (name == to_string(k)) return k;
  }
  fail("optimizer \"{}\" is unknown; use sgd, adam, adamw or rmsprop", name);
}

std::unique_ptr<Optimizer> make(Kind kind, std::span<const Tensor> parameters, const Settings& settings) {
  switch (kind) {
    case Kind::kSgd: return made<Sgd>(kind, parameters, settings);
    case Kind::kAdam: return made<Adam>(kind, parameters, settings);
    case Kind::kAdamW: return made<AdamW>(kind, parameters, settings);
    case Kind::kRmsProp: return made<RmsProp>(kind, parameters, settings);
  }
  fail("optimizer {} is unknown", static_cast<int>(kind));
}

std::unique_ptr<Optimizer> make(std::string_view name, std::span<const Tensor> parameters, const Settings& settings) {
  return make(kind_from_string(name), parameters, settings);
}

}  // namespace plumb::optim
