// A prepared job of a worker: how it is timed, and what the system counts meanwhile.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/compare/plumbline/epochs.h"
#include "bench/compare/plumbline/work.h"
#include "core/runtime.h"

namespace plumb::compare {

/// A known cost that is added to a step: a sleep, a copy, a conversion of layout.
class Fault {
 public:
  /// {"sleep_s", "copy_bytes", "convert_bytes"}, each of which may be missing.
  explicit Fault(const nlohmann::json& inject);
  void operator()();
  /// Seconds that it has taken so far, by the clock.
  double took_s() const { return took_s_; }

 private:
  double sleep_s_, took_s_ = 0;
  std::vector<char> source_, target_;
  Tensor images_;
};

/// Work on a device, and how many calls of it make a sample that the clock can see. Its replies are those of
/// workers/serve.py.
class Job {
 public:
  Job(std::unique_ptr<Work> work, Device device, const nlohmann::json& inject);
  Work& work() { return *work_; }
  /// Waits until the device has done all that it was told; the host has done it already.
  void wait() const;

  nlohmann::json run(const nlohmann::json& request);
  /// An epoch of a training (epochs.h).
  nlohmann::json epoch(const nlohmann::json& request);
  /// The first calls of a training as they are timed, from the weights in the file `inputs`: the change of each weight,
  /// "d" + NAME, and the first call's loss go to the file `results`, and "kernels" are those of the last call.
  nlohmann::json train(int calls, const std::string& inputs, const std::string& results);
  /// Those of a training's first steps.
  nlohmann::json losses(size_t steps);

 private:
  void step();
  void forget_peak();
  void warm_up(double warm_s, int warm_calls);
  double seconds_of_calls();
  int calls_for(double least_s, int least_calls);

  std::unique_ptr<Work> work_;
  Device device_;
  Runtime* runtime_;  // null on the host
  Fault fault_;
  Epochs epochs_;
  int calls_ = 0;
  bool has_peak_ = false;  // of its runs alone
  double least_s_ = 0;     // of a step that has warmed up; 0 is none yet
};

/// What the processor's clock makes of a fixed number of products, each waiting for the one before: the least of some.
double pulse_s();

}  // namespace plumb::compare
