// Measures how long work takes on the host or on a device.
#pragma once

#include <memory>

#include "device.h"
#include "runtime.h"
#include "stopwatch.h"

namespace plumb {

/// The time between two points in the order of a device's stream, by events; on the host, by its clock. Can be reused.
class Timer {
 public:
  explicit Timer(Device device = {}) {
    if (device.is_cpu()) return;
    runtime_ = &runtime_of(device);
    from_ = runtime_->make_event();
    to_ = runtime_->make_event();
  }
  void start() {
    if (runtime_) return runtime_->record(*from_, runtime_->stream());
    watch_ = {};
  }
  /// Seconds since start(); waits until the work in between is done.
  double stop() {
    if (!runtime_) return watch_.seconds();
    runtime_->record(*to_, runtime_->stream());
    return runtime_->seconds_between(*from_, *to_);
  }
  /// Seconds of one call of `work`.
  template <class Work>
  double seconds_of(Work&& work) {
    start();
    work();
    return stop();
  }

 private:
  Runtime* runtime_ = nullptr;
  std::unique_ptr<RuntimeEvent> from_, to_;
  detail::Stopwatch watch_;
};

}  // namespace plumb
