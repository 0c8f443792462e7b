// What `plumb train` was asked for.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/device.h"
#include "measure/command/values.h"
#include "optim/make.h"
#include "train/trainer.h"

namespace plumb::app {

using namespace command;

struct TrainConfig {
  std::string model = "alexnet";
  std::string data = "synthetic";  ///< a folder, or "synthetic"
  Device device;
  int64_t epochs = 30;
  optim::Kind optimizer = optim::Kind::kSgd;
  optim::Settings settings;      ///< of the optimizer; its convention is the network's as well
  std::optional<Layout> layout;  ///< none: the fastest
  KernelChoice kernels;
  training::TrainerOptions training;  ///< whose layout and normalization are found out
  int64_t limit = 0;                  ///< images of each split; 0: all
  bool augment = false;
  bool check_nan = false;
  std::string init, checkpoint, json, csv, profile;
  bool resume = false;
};

/// What must be the same for a resumed run to continue bit for bit, as a checkpoint says it.
std::map<std::string, std::string> fixed_config(const TrainConfig& config);

}  // namespace plumb::app
