// Observers of the kernels that run: a trace for Chrome's viewer, and a search for NaN.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/stopwatch.h"
#include "dispatch/recorder.h"

namespace plumb::app {

/// Notes when each kernel ran, in which part of the step: on a device by its own clock. write() makes a file for
/// chrome://tracing or ui.perfetto.dev.
class Profile final : public Observer {
 public:
  static constexpr size_t kMost = 200000;
  /// Notes at most this many kernels, the first of them.
  explicit Profile(size_t most = kMost) : most_(most) {}
  void before(const PreparedKernel&) override;
  void after(const PreparedKernel&, const Launch&) override;
  /// A step of training that took `ms` and ends now, on a row of its own.
  void add_step(int64_t number, double ms);
  /// Says on stderr how many kernels are left out, if any are.
  void write(const std::string& file);

 private:
  struct Event {
    std::string name, implementation, algorithm;
    Phase phase;
    double start_us, duration_us, flops, bytes;
    std::shared_ptr<RuntimeEvent> from{}, to{};  // on a device, by whose clock it ran
    Runtime* runtime = nullptr;
  };
  struct Step {
    int64_t number;
    double start_us, duration_us;
  };
  double now_us() const { return 1e6 * watch_.seconds(); }
  detail::Stopwatch watch_;
  double started_us_ = 0;
  std::shared_ptr<RuntimeEvent> started_, origin_;  // on a device; when the clock stood at origin_us_
  double origin_us_ = 0;
  size_t most_, left_out_ = 0;
  std::vector<Event> events_;
  std::vector<Step> steps_;
};

/// Throws at the first kernel whose output, or what it was given, holds a NaN, and names it. The inputs count because a
/// kernel may lose a NaN: a comparison, or an average over other elements, does.
class NanCheck final : public Observer {
 public:
  void after(const PreparedKernel&, const Launch&) override;
};

/// Passes on to several observers.
class Observers final : public Observer {
 public:
  void add(Observer* o) { all_.push_back(o); }
  bool empty() const { return all_.empty(); }
  void before(const PreparedKernel& p) override {
    for (Observer* o : all_) o->before(p);
  }
  void after(const PreparedKernel& p, const Launch& l) override {
    for (Observer* o : all_) o->after(p, l);
  }

 private:
  std::vector<Observer*> all_;
};

}  // namespace plumb::app
