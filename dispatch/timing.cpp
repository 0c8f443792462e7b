#include "dispatch/timing.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

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
    : runtime_(device.is_cpu() ? nullptr : &runtime_of(device)),
      run_(std::move(run)),
      options_(options),
      timer_(device) {
  if (runtime_) {
    const Runtime::Stream stream = runtime_->stream();
    run_(stream);  // the first run loads libraries and kernels
    estimate_ = timer_.seconds_of([&] { run_(stream); });
  } else {
    for (int i = 0; i < options.warm_up; ++i) run_(nullptr);
  }
}

void Timed::repeat(double seconds_of_one) {
  constexpr double kLong = 500e-6;  // seconds; an event's resolution is half a microsecond
  constexpr double kMost = 512;
  const auto wanted = static_cast<int>(std::min(kMost, std::ceil(kLong / std::max(1e-7, seconds_of_one))));
  times_ = std::max({options_.turns, times_, wanted});
}

void Timed::capture_once() {
  if (!runtime_ || std::exchange(is_captured_, true)) return;
  repeat(estimate_);
  if (!options_.can_be_captured) return;
  capture();
  // The first estimate included the launch; estimate again without it.
  const int before = times_;
  repeat(seconds_of_all());
  if (times_ > before) capture();
}

void Timed::capture() {
  graph_ = captured(*runtime_, [&](Runtime::Stream stream) {
    for (int i = 0; i < times_; ++i) run_(stream);
  });
  seconds_of_all();  // the first replay uploads the graph to the device
}

double Timed::seconds_of_all() {
  const Runtime::Stream stream = runtime_ ? runtime_->stream() : nullptr;
  const double all = timer_.seconds_of([&] {
    if (graph_) return runtime_->replay(*graph_, stream);
    for (int i = 0; i < times_; ++i) run_(stream);
  });
  return all / times_;
}

double Timed::seconds() {
  capture_once();
  return seconds_of_all();
}

double quartile_of(std::span<const double> sorted, int number) {
  const double place = static_cast<double>((sorted.size() - 1) * static_cast<size_t>(number)) / 4;
  const auto below = static_cast<size_t>(place);
  const double part = place - static_cast<double>(below);
  return part > 0 ? sorted[below] + part * (sorted[below + 1] - sorted[below]) : sorted[below];
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
  return {all.front(), quartile_of(all, 1), quartile_of(all, 2), quartile_of(all, 3)};
}

double least_seconds(Device device, Run run, Until until, const TimedOptions& options) {
  Timed work(device, std::move(run), options);
  return spread_of(work, until).least;
}

Fastest fastest_of(Device device, const std::vector<Run>& ways) {
  constexpr double kFarBehind = 1.5, kPlain = 3, kLaunch = 50e-6, kShort = 1e-3, kEnough = 0.02;
  // A replay on a device is long beside what disturbs it: of few rounds one knows who cannot win.
  constexpr double kBehind = 1.15, kJustBehind = 1.04;
  const auto most_behind = [&](int rounds) {
    return device.is_cpu() || rounds < 2 ? kFarBehind : rounds < 6 ? kBehind : kJustBehind;
  };
  std::vector<std::optional<Timed>> works(ways.size());
  std::vector<double> least(ways.size(), kNever);
  std::exception_ptr why_not;
  const auto try_way = [&](size_t i, const auto& f) {
    try {
      f(i);
    } catch (const Error&) {  // a plan of a vendor's library may fail only when it runs
      if (device.is_cpu()) throw;
      why_not = std::current_exception();
      least[i] = kNever;
      refuse_lost(device, i);
    }
  };
  for (size_t i = 0; i < ways.size(); ++i) {
    try_way(i, [&](size_t way) {
      works[way].emplace(device, ways[way], TimedOptions{.warm_up = 0});
      least[way] = works[way]->estimate();
    });
  }
  // What takes several times as long by itself, its launch aside, is not worth a replay.
  const double most = kPlain * least[least_of(least)] + kLaunch;
  double best = kNever;
  for (size_t i = 0; i < ways.size(); ++i) {
    if (!works[i] || least[i] > most) continue;
    // Several runs, so that one slow moment or a cold start drops no way; two, where both are long and far too slow. A
    // replay is of many.
    try_way(i, [&](size_t way) {
      const auto least_of_runs = [&](int runs) { return spread_of(*works[way], {{runs}, {1, kEnough}}).least; };
      least[way] = least_of_runs(2);
      best = std::min(best, least[way]);
      const bool may_be_near = least[way] < kShort || least[way] <= kPlain * best;
      if (device.is_cpu() && may_be_near && least[way] < kEnough / 2)
        least[way] = std::min(least[way], least_of_runs(3));
    });
  }
  const auto rethrow_if_none_is_left = [&] {
    if (why_not && std::isinf(least[least_of(least)])) std::rethrow_exception(why_not);
  };
  rethrow_if_none_is_left();
  for (Spent now{0}; !is_over({{200}, {20, 0.02}, {3, 0.2}}, now); ++now.rounds) {
    for (size_t i = 0; i < ways.size(); ++i) {
      if (std::isinf(least[i]) || least[i] > most_behind(now.rounds) * least[least_of(least)]) continue;
      try_way(i, [&](size_t way) {
        const double seconds = works[way]->seconds();
        now.seconds += seconds * works[way]->times();
        least[way] = std::min(least[way], seconds);
      });
    }
    rethrow_if_none_is_left();
  }
  const size_t index = least_of(least);
  return {index, least[index]};
}

}  // namespace plumb::detail
