#include "train/profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/runtime.h"

namespace plumb::training {
namespace {

// The rows of the trace; a phase has the one after that of its number.
constexpr const char* kRows[] = {"steps", "forward", "backward", "update"};

}  // namespace

void Profile::before(const PreparedKernel& p) {
  started_us_ = now_us();
  if (p.policy.device.is_cpu() || events_.size() >= most_) return;
  Runtime& r = runtime_of(p.policy.device);
  if (std::ranges::find(origins_, &r, &Origin::runtime) == origins_.end()) {
    origins_.push_back({&r, r.make_event(), now_us()});
    r.record(*origins_.back().event, r.stream());
  }
  started_ = r.make_event();
  r.record(*started_, r.stream());
}

void Profile::after(const PreparedKernel& p, const Launch&) {
  const double end = now_us();
  if (events_.size() >= most_) {
    ++left_out_;
    return;
  }
  const KernelInfo& info = p.kernel->info();
  events_.push_back({p.kind->name, info.name, info.algorithm, to_string(info.provider), detail::ctx.phase, started_us_,
                     end - started_us_, info.flops, info.bytes});
  if (p.policy.device.is_cpu()) return;
  Event& e = events_.back();
  e.runtime = &runtime_of(p.policy.device);
  e.from = std::move(started_);
  e.to = e.runtime->make_event();
  e.runtime->record(*e.to, e.runtime->stream());
}

void Profile::add_step(int64_t number, double ms) {
  if (events_.size() < most_) steps_.push_back({number, now_us() - ms * 1e3, ms * 1e3});
}

std::string Profile::trace() {
  for (Event& e : events_) {
    if (!e.runtime) continue;
    const auto origin = std::ranges::find(origins_, e.runtime, &Origin::runtime);
    e.start_us = origin->us + 1e6 * e.runtime->seconds_between(*origin->event, *e.from);
    e.duration_us = 1e6 * e.runtime->seconds_between(*e.from, *e.to);
  }
  auto events = nlohmann::json::array();
  for (const Step& s : steps_) {
    events.push_back({{"name", "step " + std::to_string(s.number)},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 0},
                      {"ts", s.start_us},
                      {"dur", s.duration_us}});
  }
  for (const Event& e : events_) {
    const int row = 1 + static_cast<int>(e.phase);
    events.push_back({{"name", e.name},
                      {"cat", kRows[row]},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", row},
                      {"ts", e.start_us},
                      {"dur", e.duration_us},
                      {"args",
                       {{"implementation", e.implementation},
                        {"algorithm", e.algorithm},
                        {"provider", e.provider},
                        {"gflops", e.flops / std::max(e.duration_us, 1e-3) / 1e3},
                        {"gbytes_per_s", e.bytes / std::max(e.duration_us, 1e-3) / 1e3}}}});
  }
  for (int i = 0; i < 4; ++i) {
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i}, {"args", {{"name", kRows[i]}}}});
  }
  return nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump();
}

}  // namespace plumb::training
