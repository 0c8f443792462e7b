#include "app/train_config.h"

#include <fmt/core.h>

#include <limits>

#include "app/data_source.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "kernels/threads.h"

namespace plumb::app {

namespace {

std::string workspace_text() {
  const size_t limit = workspace_limit(Device());
  return limit == std::numeric_limits<size_t>::max() ? "default" : std::to_string(limit / 1'000'000);
}

}  // namespace

std::map<std::string, std::string> fixed_config(const TrainConfig& c) {
  const auto text = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : std::string("default"); };
  return {{"model", c.model},
          {"data", c.data == "synthetic" ? "synthetic" : data_set_of(c.model)},
          {"optimizer", to_string(c.optimizer)},
          {"convention", to_string(c.settings.convention)},
          {"dtype", to_string(c.training.precision)},
          {"batch", std::to_string(c.training.batch)},
          {"seed", std::to_string(c.training.seed)},
          {"limit", std::to_string(c.limit)},
          {"augment", c.augment ? "yes" : "no"},
          {"learning_rate", text(c.settings.learning_rate)},
          {"momentum", text(c.settings.momentum)},
          {"weight_decay", text(c.settings.weight_decay)},
          {"algorithm", to_string(c.kernels)},
          {"kernels", to_string(c.kernels.set)},
          {"device", to_string(c.device)},
          {"workspace", workspace_text()},
          {"threads", std::to_string(threads())}};
}

}  // namespace plumb::app
