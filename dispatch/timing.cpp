#include "dispatch/timing.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>

#include "core/error.h"
#include "dispatch/captured.h"

namespace plumb::detail {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool is_over(Until until, const Spent& now) {
  return std::ranges::any_of(until,
                             [&](const Spent& end) { return now.rounds >= end.rounds && now.seconds >= end.seconds; });
}

size_t least_of(const std::vector<double>& seconds) {
  return static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin());
}

// Throws LostDevice if the device fails after this way: every call of the process would, from then on.
void refuse_lost(Device device, size_t way) {
  Runtime& runtime = runtime_of(device);
  try {
    runtime.wait(runtime.stream());
  } catch (const Error& e) {
    throw LostDevice(way, e.what());
  }
}

}  // namespace

Timed::Timed(Device device, Run run, const TimedOptions& options)
    : runtime_(device.is_cpu() ? nullptr : &runtime_of(device)), run_(std::move(run)), timer_(device) {
  if (runtime_) {
    prepare_replay(options);
  } else {
    for (int i = 0; i < options.warm_up; ++i) run_(nullptr);
  }
}

void Timed::prepare_replay(const TimedOptions& options) {
  constexpr double kLong = 500e-6;  // seconds; an event's resolution is half a microsecond
  constexpr double kMost = 512;
  const Runtime::Stream stream = runtime_->stream();
  const auto repeat = [&](double seconds_of_one) {
    const auto wanted = static_cast<int>(std::min(kMost, std::ceil(kLong / std::max(1e-7, seconds_of_one))));
    times_ = std::max({options.turns, times_, wanted});
  };
  run_(stream);  // the first run loads libraries and kernels
  repeat(timer_.seconds_of([&] { run_(stream); }));
  if (!options.can_be_captured) return;
  capture();
  // The first estimate included the launch; estimate again without it.
  const int before = times_;
  repeat(seconds());
  if (times_ > before) capture();
}

void Timed::capture() {
  graph_ = captured(*runtime_, [&](Runtime::Stream stream) {
    for (int i = 0; i < times_; ++i) run_(stream);
  });
  seconds();  // the first replay uploads the graph to the device
}

double Timed::seconds() {
  const Runtime::Stream stream = runtime_ ? runtime_->stream() : nullptr;
  const double all = timer_.seconds_of([&] {
    if (graph_) return runtime_->replay(*graph_, stream);
    for (int i = 0; i < times_; ++i) run_(stream);
  });
  return all / times_;
}

Spread spread_of(Timed& work, Until until) {
  std::vector<double> all;
  Spent now{0};
  do {
    all.push_back(work.seconds());
    ++now.rounds;
    now.seconds += all.back();
  } while (!is_over(until, now));
  std::ranges::sort(all);
  const auto at = [&](size_t quarters) { return all[(all.size() - 1) * quarters / 4]; };
  return {all.front(), at(1), at(2), at(3)};
}

double least_seconds(Device device, Run run, Until until, const TimedOptions& options) {
  Timed work(device, std::move(run), options);
  return spread_of(work, until).least;
}

Fastest fastest_of(Device device, const std::vector<Run>& ways) {
  constexpr double kFarBehind = 1.5;
  std::vector<std::optional<Timed>> works(ways.size());
  std::vector<double> least(ways.size(), kNever);
  std::exception_ptr why_not;
  for (size_t i = 0; i < ways.size(); ++i) {
    try {
      works[i].emplace(device, ways[i], TimedOptions{.warm_up = 0});
      // Several runs, so that one slow moment or a cold start drops no way.
      least[i] = spread_of(*works[i], {{5}, {1, 0.02}}).least;
    } catch (const Error&) {  // a plan of a vendor's library may fail only when it runs
      if (device.is_cpu()) throw;
      why_not = std::current_exception();
      refuse_lost(device, i);
    }
  }
  if (why_not && std::isinf(least[least_of(least)])) std::rethrow_exception(why_not);
  for (Spent now{0}; !is_over({{200}, {20, 0.02}, {3, 0.2}}, now); ++now.rounds) {
    for (size_t i = 0; i < ways.size(); ++i) {
      if (std::isinf(least[i]) || least[i] > kFarBehind * least[least_of(least)]) continue;
      const double seconds = works[i]->seconds();
      now.seconds += seconds;
      least[i] = std::min(least[i], seconds);
    }
  }
  const size_t index = least_of(least);
  return {index, least[index]};
}

}  // namespace plumb::detail
