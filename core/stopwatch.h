// How long something takes.
#pragma once

#include <algorithm>
#include <chrono>

namespace plumb::detail {

/// Time since it was made.
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

/// The least seconds of `rounds` calls of `work`.
template <class Work>
double best_seconds_of(int rounds, Work&& work) {
  double best = seconds_of(work);
  for (int i = 1; i < rounds; ++i) best = std::min(best, seconds_of(work));
  return best;
}

}  // namespace plumb::detail
