// A trace of the kernels that run, for Chrome's viewer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../core/stopwatch.h"
#include "../dispatch/recorder.h"

namespace plumb::training {

/// Records when each kernel ran, and in which phase of the step; on a device, by the device's clock.
class Profile final : public Observer {
 public:
  static constexpr size_t kMost = 200000;
  /// Records only the first `most` kernels.
  explicit Profile(size_t most = kMost) : most_(most) {}
  void before(const PreparedKernel&) override;
  void after(const PreparedKernel&, const Launch&) override;
  /// Adds a training step that took `ms` and ends now, in its own row.
  void add_step(int64_t number, double ms);
  /// The trace as the text of a file for chrome://tracing or ui.perfetto.dev. Waits for the device.
  std::string trace();
  /// How many kernels were recorded.
  size_t noted() const { return events_.size(); }
  /// How many later kernels were not recorded.
  size_t left_out() const { return left_out_; }

 private:
  struct Event {
    std::string name, implementation, algorithm, provider;
    Phase phase;
    double start_us, duration_us, flops, bytes;
    std::shared_ptr<RuntimeEvent> from{}, to{};  // on a device, whose clock times it
    Runtime* runtime = nullptr;
  };
  // Where a device's clock stood at a time of the host's.
  struct Origin {
    Runtime* runtime;
    std::shared_ptr<RuntimeEvent> event;
    double us;
  };
  struct Step {
    int64_t number;
    double start_us, duration_us;
  };
  double now_us() const { return 1e6 * watch_.seconds(); }
  detail::Stopwatch watch_;
  double started_us_ = 0;
  std::shared_ptr<RuntimeEvent> started_;  // on a device
  std::vector<Origin> origins_;            // one for each device
  size_t most_, left_out_ = 0;
  std::vector<Event> events_;
  std::vector<Step> steps_;
};

}  // namespace plumb::training
