// An optimizer by its kind, or by its name.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "optimizer.h"

namespace plumb::optim {

/// The optimizers that there are.
enum class Kind : uint8_t { kSgd, kAdam, kAdamW, kRmsProp };
inline constexpr Kind kKinds[] = {Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kRmsProp};
/// "sgd", "adam", "adamw", "rmsprop".
const char* to_string(Kind k);
/// The inverse of to_string; throws on an unknown name.
Kind kind_from_string(std::string_view name);

/// What all kinds may be told; the rest are the convention's defaults.
struct Settings {
  Convention convention = Convention::kPyTorch;
  std::optional<double> learning_rate{}, momentum{}, weight_decay{};
};

/// Throws on a setting that the optimizer does not have, and where the convention has no default learning rate and none
/// is given.
std::unique_ptr<Optimizer> make(Kind kind, std::span<const Tensor> parameters, const Settings& settings);
/// The same by a name; throws also where kind_from_string does.
std::unique_ptr<Optimizer> make(std::string_view name, std::span<const Tensor> parameters, const Settings& settings);

}  // namespace plumb::optim
