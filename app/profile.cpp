#include "app/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/report.h"
#include "core/block.h"

namespace plumb::app {
namespace {

const char* name_of(Phase p) {
  switch (p) {
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kUpdate: return "update";
  }
  return "";
}

template <class T>
bool has_nan(const void* data, int64_t n) {
  const auto* p = static_cast<const T*>(data);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(static_cast<double>(static_cast<float>(p[i])))) return true;
  }
  return false;
}

bool holds_nan(const void* data, const TensorSpec& s, Device device) {
  if (!data || is_pack(s.layout) || !is_floating(s.dtype)) return false;
  if (!device.is_cpu()) {
    const detail::Block here = detail::block_of(s.bytes());
    detail::copy_bytes(here.get(), {}, data, device, s.bytes());
    return holds_nan(here.get(), s, {});
  }
  switch (s.dtype) {
    case DType::kF32: return has_nan<float>(data, s.numel());
    case DType::kF64: return has_nan<double>(data, s.numel());
    case DType::kF16: return has_nan<Float16>(data, s.numel());
    case DType::kBf16: return has_nan<Bfloat16>(data, s.numel());
    default: return false;
  }
}

}  // namespace

void Profile::before(const PreparedKernel& p) {
  started_us_ = now_us();
  if (p.policy.device.is_cpu() || events_.size() >= most_) return;
  Runtime& r = runtime_of(p.policy.device);
  if (!origin_) {
    origin_ = r.make_event();
    r.record(*origin_, r.stream());
    origin_us_ = now_us();
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
  events_.push_back({p.kind->name, info.name, info.algorithm, detail::ctx.phase, started_us_, end - started_us_,
                     info.flops, info.bytes});
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

void Profile::write(const std::string& file) {
  for (Event& e : events_) {
    if (!e.runtime) continue;
    e.start_us = origin_us_ + 1e6 * e.runtime->seconds_between(*origin_, *e.from);
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
    events.push_back({{"name", e.name},
                      {"cat", name_of(e.phase)},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1 + static_cast<int>(e.phase)},
                      {"ts", e.start_us},
                      {"dur", e.duration_us},
                      {"args",
                       {{"implementation", e.implementation},
                        {"algorithm", e.algorithm},
                        {"gflops", e.flops / std::max(e.duration_us, 1e-3) / 1e3},
                        {"gbytes_per_s", e.bytes / std::max(e.duration_us, 1e-3) / 1e3}}}});
  }
  const char* rows[] = {"steps", "forward", "backward", "update"};
  for (int i = 0; i < 4; ++i) {
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i}, {"args", {{"name", rows[i]}}}});
  }
  write_text(file, nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump());
  if (left_out_ > 0) {
    fmt::print(stderr, "plumb: {} has the first {} kernels and leaves out {}; train on fewer images to see all\n", file,
               most_, left_out_);
  }
}

// Earlier kernels were looked at: what an input holds came from outside, or was written by this one.
void NanCheck::after(const PreparedKernel& p, const Launch& l) {
  const auto check = [&](const char* which, std::span<const TensorSpec> specs, auto pointer) {
    for (size_t i = 0; i < specs.size(); ++i) {
      PLUMB_CHECK(!holds_nan(pointer(i), specs[i], p.policy.device),
                  "{}: {} {} {} holds a NaN; look at its inputs, or lower the learning rate", p.kind->name, which, i,
                  specs[i]);
    }
  };
  const auto& packs = p.kernel->info().packs;
  check("input", p.in(), [&](size_t i) -> const void* {
    const bool is_packed =
        std::ranges::any_of(packs, [&](const PackRequest& r) { return r.input == static_cast<int>(i); });
    return is_packed ? nullptr : l.in[i];  // it was looked at when it was packed
  });
  check("output", p.out(), [&](size_t i) { return l.out[i]; });
}

}  // namespace plumb::app
