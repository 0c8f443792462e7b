// An optimizer by its name.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "optimizer.h"

namespace plumb::optim {

/// What may be set by name; the rest are the convention's defaults.
struct Settings {
  Convention convention = Convention::kPyTorch;
  std::optional<double> learning_rate{}, momentum{}, weight_decay{};
};

/// "sgd", "adam", "adamw" or "rmsprop". Throws on another name, on a setting that the optimizer does not have, and
/// where the convention has no default learning rate and none is given.
std::unique_ptr<Optimizer> make(std::string_view name, std::span<const Tensor> parameters, const Settings& settings);

}  // namespace plumb::optim
