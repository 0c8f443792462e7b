// Times work. Candidates, roofs and benchmarks are all timed by this code.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "../core/error.h"
#include "../core/runtime.h"
#include "../core/timer.h"

namespace plumb::detail {

/// Work to put on the given stream of a device; on the host the stream is null. Every call does the same work.
using Run = std::function<void(Runtime::Stream)>;

struct TimedOptions {
  int warm_up = 1;              ///< untimed runs on the host before the first timed one; a device always has some
  int turns = 1;                ///< runs until its first buffers are used again: a replay has at least so many
  bool can_be_captured = true;  ///< if not, a replay on a device is a row of single launches
};

/// Work that is ready to be timed: on the host each run by the clock; on a device replays of a graph of many runs,
/// between two events. (Around a single short kernel, events would measure how soon the next launch arrives.)
class Timed {
 public:
  /// Warms up. On a device it makes two runs, by which `estimate` goes.
  Timed(Device device, Run run, const TimedOptions& options = {});
  /// On a device, captures enough runs that a replay is long compared with the clock's resolution; does so once.
  void capture_once();
  /// Makes one run, or one replay on a device, and returns the seconds per run.
  double seconds();
  /// How many runs one call of seconds() makes; 1 on the host.
  int times() {
    capture_once();
    return times_;
  }
  /// The seconds of a single run on a device, its launch included; 0 on the host.
  double estimate() const { return estimate_; }

 private:
  void repeat(double seconds_of_one);
  void capture();
  double seconds_of_all();
  Runtime* runtime_;  // null on the host
  Run run_;
  TimedOptions options_;
  Timer timer_;
  double estimate_ = 0;
  int times_ = 1;
  bool is_captured_ = false;
  std::unique_ptr<RuntimeGraph> graph_;
};

/// Rounds of timing, and the seconds that they took in all.
struct Spent {
  int rounds;
  double seconds = 0;
};
/// When timing ends: as soon as both numbers of any one entry are reached. {{20}, {3, 0.3}} ends after 20 rounds, or
/// after 0.3 s if at least 3 rounds are done by then.
using Until = std::initializer_list<Spent>;

/// The distribution of the seconds of single runs.
struct Spread {
  double least, lower_quartile, median, upper_quartile;
};
/// Quartile number 1, 2 (the median) or 3 of ascending numbers, at least one: interpolated between two of them, as
/// NumPy's default does.
double quartile_of(std::span<const double> sorted, int number);
/// Times work alone, in at least one round.
Spread spread_of(Timed& work, Until until);
/// The seconds of the fastest run.
double least_seconds(Device device, Run run, Until until, const TimedOptions& options = {});

/// The fastest of several ways to do the same work, and the seconds of its fastest run.
struct Fastest {
  size_t index;
  double seconds;
};
/// The fastest of these ways. Each is timed alone for a moment; then all take turns, so that a slow moment hits all
/// alike: until 20 rounds and 20 ms, or three rounds and a fifth of a second are over, or 200 rounds. Ways that are far
/// behind are dropped, after two runs if that is plain, and on a device after some rounds if they are a little behind.
/// The host gets no warm-up, since a way may take seconds. On a device, a way that throws Error is passed over, unless
/// all throw, or it takes the device along (LostDevice).
Fastest fastest_of(Device device, const std::vector<Run>& ways);

/// A way that was timed wrote or read where no memory is: from then on the process has no device.
struct LostDevice : Error {
  LostDevice(size_t the_way, const std::string& why) : Error(why), way(the_way) {}
  size_t way;
};

}  // namespace plumb::detail
