// plumb plan: a training step of a network, planned for a GPU that need not be there.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/device_description.h"
#include "app/plan_step.h"
#include "core/runtime.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"
#include "measure/command/options.h"
#include "measure/command/report.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

double mb(size_t bytes) { return static_cast<double>(bytes) / 1e6; }

Json json_of(const PlannedKernel& k) {
  Json j{{"kernel", k.kind},
         {"shapes", k.shapes},
         {"output", k.output},
         {"provider", to_string(k.provider)},
         {"algorithm", k.algorithm},
         {"notes", k.notes},
         {"workspace_bytes", k.workspace_bytes},
         {"bytes", k.bytes},
         {"flops", k.flops},
         {"floor_us", k.floor_seconds * 1e6},
         {"launches", k.launches},
         {"inferred_copies", k.inferred_copies}};
  if (k.is_without_plan) j["without_plan"] = true;
  if (!k.passed_over.empty()) {
    j["nondeterministic_first_choice"] = {{"algorithm", k.passed_over},
                                          {"workspace_bytes", k.passed_over_workspace_bytes}};
  }
  return j;
}

struct Totals {
  double bytes = 0, flops = 0, floor_seconds = 0;
  int from_cudnn = 0, converting = 0, nominal = 0;
};
Totals totals_of(const PlannedStep& s) {
  Totals t;
  for (const PlannedKernel& k : s.kernels) {
    t.bytes += k.bytes;
    t.flops += k.flops;
    t.floor_seconds += k.floor_seconds;
    t.from_cudnn += k.provider == Provider::kCudnn ? 1 : 0;
    t.converting += k.inferred_copies.empty() ? 0 : 1;
    const auto has = [&](const char* note) { return k.notes.find(note) != std::string::npos; };
    t.nominal += has("winograd") || has("fft") ? 1 : 0;
  }
  return t;
}

Json json_of(const PlannedStep& s) {
  Json kernels = Json::array();
  for (const PlannedKernel& k : s.kernels) kernels.push_back(json_of(k));
  const Totals t = totals_of(s);
  return {{"layout", to_string(s.layout)},
          {"kernels", kernels},
          {"launches", s.launches},
          {"bytes", t.bytes},
          {"flops", t.flops},
          {"floor_ms", t.floor_seconds * 1e3},
          {"kernels_with_inferred_copies", t.converting},
          {"arena_bytes", s.program.arena_bytes},
          {"unplanned_bytes", s.program.unplanned_bytes},
          {"workspace_bytes", s.program.workspace_bytes},
          {"memory", memory_json(s.memory)},
          {"planned_in_s", s.seconds}};
}

std::string copies_text(const PlannedKernel& k) { return k.inferred_copies.empty() ? "" : k.inferred_copies + " ?"; }

void print_kernels(const PlannedStep& s) {
  fmt::print("\n{}\n{:<27} {:<33} {:<10} {:<20} {:>9} {:>7} {:>9} {:>9} {:>9}  {}\n", to_string(s.layout), "kernel",
             "shapes", "provider", "algorithm", "work MB", "copies", "MB", "GFLOP", "floor us", "notes");
  for (const PlannedKernel& k : s.kernels) {
    fmt::print("{:<27} {:<33} {:<10} {:<20} {:>9.2f} {:>7} {:>9.2f} {:>9.2f} {:>9.1f}  {}\n", k.kind, k.shapes,
               to_string(k.provider), k.algorithm, mb(k.workspace_bytes), copies_text(k), k.bytes / 1e6, k.flops / 1e9,
               k.floor_seconds * 1e6, k.notes);
  }
}

// The kernels of two steps beside each other: those of the same kind and shapes are the same row.
void print_beside(const PlannedStep& a, const PlannedStep& b) {
  fmt::print("\n{:<27} {:<33} {:<37} {}\n", "", "", to_string(a.layout), to_string(b.layout));
  fmt::print("{:<27} {:<33}", "kernel", "shapes");
  for (int i = 0; i < 2; ++i) fmt::print(" {:<18} {:>6} {:>7} {:<3}", "algorithm", "work", "copies", "");
  fmt::print(" {:>8} {:>8} {:>9}\n", "MB", "GFLOP", "floor us");
  const auto cell = [](const PlannedKernel* k) {
    if (!k) return std::string(37, ' ');
    const bool is_own = k->provider == Provider::kPlumbline;
    return fmt::format("{:<18} {:>6.1f} {:>7} {:<3}", is_own ? "plumb " + k->algorithm : k->algorithm,
                       mb(k->workspace_bytes), copies_text(*k), flags_of(*k));
  };
  const auto same = [](const PlannedKernel& x, const PlannedKernel& y) {
    return x.kind == y.kind && x.shapes == y.shapes;
  };
  const auto line = [&](const PlannedKernel* x, const PlannedKernel* y) {
    const PlannedKernel& any = x ? *x : *y;
    fmt::print("{:<27} {:<33} {} {} {:>8.2f} {:>8.2f} {:>9.1f}\n", any.kind, any.shapes, cell(x), cell(y),
               any.bytes / 1e6, any.flops / 1e9, any.floor_seconds * 1e6);
  };
  const size_t a_end = a.kernels.size(), b_end = b.kernels.size();
  size_t i = 0, j = 0;
  // Where both have the same kernel next, near by if at all.
  const auto meeting = [&]() -> std::pair<size_t, size_t> {
    for (size_t d = 0; d < 16; ++d) {
      for (size_t x = i, y = j + d; x <= i + d; ++x, --y) {
        if (x < a_end && y < b_end && same(a.kernels[x], b.kernels[y])) return {x, y};
      }
    }
    return {a_end, b_end};
  };
  while (i < a_end || j < b_end) {
    const auto [next_i, next_j] = meeting();
    while (i < next_i) line(&a.kernels[i++], nullptr);
    while (j < next_j) line(nullptr, &b.kernels[j++]);
    if (i < a_end && j < b_end) line(&a.kernels[i++], &b.kernels[j++]);
  }
  fmt::print("work: MB of workspace. {}\n", kFlags);
}

std::string counted(size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

// What the vendor's library has no plan for, and what takes its place: a line for each kind.
void print_without_plan(const PlannedStep& s) {
  std::map<std::string, std::vector<const PlannedKernel*>> without;
  for (const PlannedKernel& k : s.kernels) {
    if (k.is_without_plan) without[k.kind + "\n" + to_string(k.provider) + " " + k.algorithm].push_back(&k);
  }
  for (const auto& [what, kernels] : without) {
    const size_t end = what.find('\n');
    fmt::print("  no plan of cuDNN: {}, {} (as {}); {} takes its place\n", what.substr(0, end),
               counted(kernels.size(), "kernel"), kernels[0]->shapes, what.substr(end + 1));
  }
}

void print_totals(const PlannedStep& s) {
  const Totals t = totals_of(s);
  fmt::print("{}: {} kernels, {} of cuDNN, {} launches; {} moved, {:.1f} GFLOP, floor {:.3f} ms\n", to_string(s.layout),
             s.kernels.size(), t.from_cudnn, s.launches, in_mb(t.bytes), t.flops / 1e9, t.floor_seconds * 1e3);
  const auto of = [&](MemoryClass c) { return static_cast<double>(s.memory.peak_bytes[static_cast<size_t>(c)]); };
  fmt::print("  memory: parameters {}, optimizer {}, arena {} ({} without a plan), workspace {}\n",
             in_mb(of(MemoryClass::kParameter)), in_mb(of(MemoryClass::kState)),
             in_mb(static_cast<double>(s.program.arena_bytes)), in_mb(static_cast<double>(s.program.unplanned_bytes)),
             in_mb(static_cast<double>(s.program.workspace_bytes)));
  if (t.converting) {
    fmt::print(
        "  copies: in {} operands are copied into another layout (inferred from workspaces; cuDNN does not tell)\n",
        counted(static_cast<size_t>(t.converting), "kernel"));
  }
  if (t.nominal) {
    fmt::print("  floors: {} by Winograd or FFT need fewer FLOPs than the definition, which the floor counts\n",
               counted(static_cast<size_t>(t.nominal), "kernel"));
  }
  print_without_plan(s);
  int convolutions = 0, left_out = 0;
  double before = 0, after = 0;
  for (const PlannedKernel& k : s.kernels) {
    convolutions += k.kind.starts_with("conv2d_backward") ? 1 : 0;
    if (k.passed_over.empty() || !k.kind.starts_with("conv2d_backward")) continue;
    ++left_out;
    before += mb(k.passed_over_workspace_bytes), after += mb(k.workspace_bytes);
  }
  if (left_out) {
    fmt::print(
        "  determinism: in {} of {} backward convolutions the first policy changes from run to run, and another is "
        "taken:\n"
        "  {:.1f} MB of workspace together instead of {:.1f}; what it costs in time only the device tells\n",
        left_out, convolutions, after, before);
  }
  fmt::print("  planned in {:.2f} s\n", s.seconds);
}

// The most workspace, where it is not what a GPU gives by itself; otherwise nothing.
std::string workspace_text(Device device) {
  const size_t limit = workspace_limit(device);
  return limit == runtime_of(device).properties().memory_bytes / 8 ? "" : in_mb(static_cast<double>(limit));
}

// What was named and is not there would go unnoticed: others take its place.
void check_is_used(const PlanConfig& c, const PlannedStep& s, Device device) {
  if (!c.kernels.algorithm) return;
  const std::string algorithm = to_string(c.kernels);
  const auto is_it = [&](const PlannedKernel& k) { return is_of_family(k.algorithm, algorithm); };
  const std::string limit = workspace_text(device);
  PLUMB_CHECK(
      std::any_of(s.kernels.begin(), s.kernels.end(), is_it),
      "--algorithm {}: there is no such plan for any kernel of {} in {}{}; leave it out to see those that there are",
      algorithm, c.model, to_string(s.layout), limit.empty() ? "" : " within a workspace of " + limit);
}

void plan(PlanConfig c) {
  check_outputs({{"--json", c.json}}, {{"--on", c.on.ends_with(".json") ? c.on : ""}});
  if (c.model == "vgg") c.model = "vgg16";
  const auto [device, driver, roofs, libraries] = planning_on(c.on, "plan");
  const DeviceProperties& p = runtime_of(device).properties();
  std::vector<PlannedStep> steps;
  for (const Layout layout : layouts_of(c)) {
    steps.push_back(plan_step(c, layout, device, roofs));
    check_is_used(c, steps.back(), device);
  }
  fmt::print("{}, a training step with {}, batch {}, {}, {}, on {} (described: nothing runs)\n", c.model,
             to_string(c.optimizer), c.batch, to_string(c.precision), whose(c.kernels), p.name);
  for (const std::string& v : libraries) fmt::print("planned by {}\n", v);
  fmt::print("driver: {}{}\n", driver,
             driver == std::string_view("none") ? "; engines that are compiled at run time are left out" : "");
  const bool is_measured = c.kernels.search == Search::kMeasured && !c.kernels.algorithm;
  if (is_measured) fmt::print("there is nothing to measure on: chosen by heuristics\n");
  if (const std::string limit = workspace_text(device); !limit.empty()) fmt::print("workspace: {} at most\n", limit);
  fmt::print("roofs: {:.2f} TB/s, {:.0f} TFLOP/s f32, {:.0f} tf32, {:.0f} bf16 ({})\n", roofs.bytes / 1e12,
             roofs.f32 / 1e12, roofs.tf32 / 1e12, roofs.bf16 / 1e12,
             roofs.is_measured ? "memory and bf16 as reached by a copy and a large product" : "by clocks and widths");
  if (steps.size() == 2) {
    print_beside(steps[0], steps[1]);
  } else {
    print_kernels(steps[0]);
  }
  fmt::print("\n");
  for (const PlannedStep& s : steps) print_totals(s);
  if (c.json.empty()) return;
  Json j = environment_json(device);
  j["libraries"] = libraries;
  j["driver"] = driver;
  j["model"] = c.model, j["batch"] = c.batch, j["dtype"] = to_string(c.precision);
  j["optimizer"] = to_string(c.optimizer);
  j["algorithm"] = is_measured ? "heuristic" : to_string(c.kernels), j["kernels"] = to_string(c.kernels.set);
  j["workspace_limit_bytes"] = workspace_limit(device);
  j["roofs"] = {{"bytes_per_s", roofs.bytes},
                {"f32_flops", roofs.f32},
                {"tf32_flops", roofs.tf32},
                {"bf16_flops", roofs.bf16},
                {"measured", roofs.is_measured}};
  j["steps"] = Json::array();
  for (const PlannedStep& s : steps) j["steps"].push_back(json_of(s));
  write_json(c.json, j);
}

}  // namespace

void add_plan(const CommandLine& plumb) {
  const CommandLine cmd = plumb.subcommand("plan", "Plan a training step for a GPU that need not be there");
  auto c = std::make_shared<PlanConfig>();
  add_model_option(cmd, c->model);
  add_device_description_option(cmd, c->on);
  add_choice(cmd, "--layout", c->layout, kPublicLayouts, {"Of the images, [nchw beside nhwc]: "});
  add_dtype_option(cmd, c->precision);
  add_batch_option(cmd, c->batch, "Images of a step");
  add_kernel_options(cmd, c->kernels);
  add_workspace_option(cmd);
  cmd.add("--json", c->json, {"Write all of it to this file"});
  cmd.calls([c] { plan(*c); });
}

}  // namespace plumb::app
