// How long something takes on the host.
#pragma once

#include <chrono>

namespace plumb::detail {

/// The time since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double ms() const { return 1e3 * seconds(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Seconds that one call of `work` takes.
template <class Work>
double seconds_of(Work&& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

}  // namespace plumb::detail
