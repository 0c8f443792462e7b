#include "dispatch/repeated.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace plumb::detail {

std::unique_ptr<RuntimeGraph> captured(Runtime& runtime, const std::function<void(Runtime::Stream)>& work) {
  const Runtime::Stream stream = runtime.begin_capture();
  try {
    work(stream);
  } catch (...) {
    try {
      runtime.end_capture();
    } catch (const Error&) {  // which the first one led to
    }
    throw;
  }
  return runtime.end_capture();
}

Repeated::Repeated(Device device, Run run, int turns, bool can_be_captured)
    : runtime_(runtime_of(device)), run_(std::move(run)), timer_(device) {
  constexpr double kLong = 500e-6;  // seconds, beside an event's half a microsecond
  constexpr double kMost = 512;
  const Runtime::Stream stream = runtime_.stream();
  const auto repeat = [&](double seconds_of_one) {
    times_ = std::max({turns, times_, static_cast<int>(std::min(kMost, std::ceil(kLong / seconds_of_one)))});
  };
  run_(stream);  // loads what is loaded at first use
  repeat(std::max(1e-7, timer_.seconds_of([&] { run_(stream); })));
  if (!can_be_captured) return;
  capture();
  // That one had the launch in it: now without.
  const int before = times_;
  repeat(std::max(1e-7, seconds()));
  if (times_ > before) capture();
}

void Repeated::capture() {
  graph_ = captured(runtime_, [&](Runtime::Stream stream) {
    for (int i = 0; i < times_; ++i) run_(stream);
  });
  seconds();  // the first replay brings the graph to the device
}

double Repeated::seconds() {
  const double all = timer_.seconds_of([&] {
    if (graph_) return runtime_.replay(*graph_, runtime_.stream());
    for (int i = 0; i < times_; ++i) run_(runtime_.stream());
  });
  return all / times_;
}

double Repeated::best_seconds(int rounds) {
  double best = seconds();
  for (int i = 1; i < rounds; ++i) best = std::min(best, seconds());
  return best;
}

}  // namespace plumb::detail
