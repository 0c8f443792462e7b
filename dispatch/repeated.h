// Work on a device as a graph, and short work timed by it, without what the host takes to launch it.
#pragma once

#include <functional>
#include <memory>

#include "../core/runtime.h"
#include "../core/timer.h"

namespace plumb::detail {

/// Work on the stream that it is given, as one graph of the device.
std::unique_ptr<RuntimeGraph> captured(Runtime& runtime, const std::function<void(Runtime::Stream)>& work);

/// Work that is captured a number of times in one graph. A single short kernel between two events would show how long
/// the next launch is in coming.
class Repeated {
 public:
  using Run = std::function<void(Runtime::Stream)>;
  /// Runs the work a few times, which must do the same however often, and captures it: so many times that a replay
  /// is long beside the clock, and at least `turns`, after which its buffers come round. Work that cannot be captured
  /// is launched as often between two events instead.
  Repeated(Device device, Run run, int turns = 1, bool can_be_captured = true);
  /// Seconds of one run, of a replay that is done.
  double seconds();
  /// How many runs a replay is.
  int times() const { return times_; }
  /// The least of so many replays.
  double best_seconds(int rounds);

 private:
  void capture();
  Runtime& runtime_;
  Run run_;
  Timer timer_;
  int times_ = 1;
  std::unique_ptr<RuntimeGraph> graph_;
};

}  // namespace plumb::detail
