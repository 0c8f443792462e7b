// What a training run prints and writes down.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/train_config.h"
#include "core/runtime.h"
#include "train/profile.h"

namespace plumb::app {

/// Writes a trace to a file, and says on stderr how many kernels are left out of it, if any are.
void write_profile(training::Profile& profile, const std::string& file);

/// Prints a line an epoch, and writes the files of --json and --csv after each, so that a run that is stopped keeps
/// what it has. Streams get theirs at the end.
class TrainReport {
 public:
  /// Keeps a reference to the config, whose layout is found out by then.
  explicit TrainReport(const TrainConfig& config);
  void begin_epoch();
  void add_step(double ms);
  /// Of epoch number `epoch` (from 0), which trained on so many images. Writes the files; warns once when the loss is
  /// no finite number.
  void add_epoch(int64_t epoch, int64_t images, const training::EpochResult& result);
  /// Prints means and memory.
  void finish();

 private:
  enum class When { kMeanwhile, kAtTheEnd };
  void write(When when);
  void print_transfers() const;

  const TrainConfig& config_;
  nlohmann::ordered_json json_;
  std::string csv_;
  double seconds_ =
      0;  // of the epochs that means are of: all but the first, in which kernels are chosen, if it has others
  int64_t images_ = 0, epochs_ = 0;
  bool is_first_apart_ = false;
  Runtime* runtime_ = nullptr;       // of the device, if it is not the host
  DeviceCounts seen_;                // at the end of the last step
  std::vector<DeviceCounts> moved_;  // by each step
  bool warned_ = false;
};

}  // namespace plumb::app
