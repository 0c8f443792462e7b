// How long work takes: the one way in which it is timed, for choosing among candidates, for roofs and in benchmarks.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "../core/runtime.h"
#include "../core/timer.h"

namespace plumb::detail {

/// Work on the stream of a device that it is given, or on null on the host; the same however often it is called.
using Run = std::function<void(Runtime::Stream)>;

struct TimedOptions {
  int warm_up = 1;              ///< runs on the host before the first that is timed; a device always has some
  int turns = 1;                ///< runs after which its buffers come round: a replay on a device has as many at least
  bool can_be_captured = true;  ///< else a device is given the launches of a replay one by one
};

/// Work that is ready to be timed: on the host run by run, by its clock; on a device by replays of a graph of many
/// runs, between two events. (A single short kernel between these would show how long the next launch is in coming.)
class Timed {
 public:
  /// Warms up. On a device the work is captured, so many times that a replay is long beside the clock.
  Timed(Device device, Run run, const TimedOptions& options = {});
  /// Seconds of one run: of one that is done now, or on average in a replay that is.
  double seconds();
  /// How many runs that takes; 1 on the host.
  int times() const { return times_; }

 private:
  void prepare_replay(const TimedOptions& options);
  void capture();
  Runtime* runtime_;  // null on the host
  Run run_;
  Timer timer_;
  int times_ = 1;
  std::unique_ptr<RuntimeGraph> graph_;
};

/// Rounds of timing, and the seconds that they took together.
struct Spent {
  int rounds;
  double seconds = 0;
};
/// When timing ends: as soon as both numbers of one of these are reached. {{20}, {3, 0.3}} are 20 rounds, or, if these
/// would take longer than 0.3 s, as many as do not, but 3 at least.
using Until = std::initializer_list<Spent>;

/// How the seconds of single runs are spread.
struct Spread {
  double least, lower_quartile, median, upper_quartile;
};
/// Times work by itself, in one round at least.
Spread spread_of(Timed& work, Until until);
/// The least seconds of a run of this work.
double least_seconds(Device device, Run run, Until until, const TimedOptions& options = {});

/// One of several ways to do the same work, and its least seconds.
struct Fastest {
  size_t index;
  double seconds;
};
/// The fastest of these ways: each is timed by itself for a moment, and then all in turn, so that a slow moment hits
/// all alike, for a fifth of a second in all unless three rounds take longer. Those that are far behind are left out.
/// Nothing is warmed up on the host: a way may take seconds. On a device a way that throws Error is passed over, unless
/// all do.
Fastest fastest_of(Device device, const std::vector<Run>& ways);

}  // namespace plumb::detail
