// plumb audit plans: what each policy would choose for a training step on a GPU that need not be there, and whether
// every process chooses alike.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/audit_rows.h"
#include "app/command.h"
#include "app/device_description.h"
#include "core/runtime.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"
#include "measure/command/options.h"
#include "measure/command/report.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

struct Config : PlanConfig {
  int64_t processes = 20;
};

std::vector<PlannedStep> steps_of(PlanConfig c, Layout layout, Device device, const measure::DeviceRoofs& roofs) {
  std::vector<PlannedStep> steps;
  for (const Search policy : kAuditedPolicies) {
    c.kernels = {.search = policy, .set = c.kernels.set};
    steps.push_back(plan_step(c, layout, device, roofs));
  }
  return steps;
}

/// A pipe, one end of which another process writes to.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> made{};
    PLUMB_CHECK(pipe2(made.data(), O_CLOEXEC) == 0, "audit plans: no pipe can be made");
    for (size_t i = 0; i < 2; ++i) {
      // Beside the standard ones, even if those are closed.
      ends_[i] = fcntl(made[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
      close(made[i]);
    }
  }
  ~Pipe() {
    close(ends_[0]);
    close_written();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int written() const { return ends_[1]; }
  void close_written() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  /// All that is written until nobody has the other end.
  std::string read_all() const {
    std::string text;
    std::array<char, 4096> some;
    while (true) {
      const ssize_t n = read(ends_[0], some.data(), some.size());
      if (n > 0) text.append(some.data(), static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) return text;
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// What another process of this program plans, as plumb plan writes it.
Json plan_of_a_process(const Config& c, Layout layout) {
  Pipe pipe;
  std::vector<std::string> words = {"plumb",
                                    "plan",
                                    c.model,
                                    "--on",
                                    c.on,
                                    "--layout",
                                    to_string(layout),
                                    "--dtype",
                                    to_string(c.precision),
                                    "--batch",
                                    std::to_string(c.batch),
                                    "--algorithm",
                                    "heuristic",
                                    "--kernels",
                                    to_string(c.kernels.set),
                                    "--json",
                                    "/proc/self/fd/" + std::to_string(pipe.written())};
  if (const size_t limit = workspace_limit(Device()); limit != std::numeric_limits<size_t>::max())
    words.insert(words.end(), {"--workspace", std::to_string(limit / 1000000)});
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe.written(), pipe.written());  // there it stays open
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  pipe.close_written();
  const std::string json = pipe.read_all();
  int status = 0;
  PLUMB_CHECK(failed == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "audit plans: another process could not plan the same; --processes 0 leaves that out");
  return Json::parse(json);
}

void count_alike(const Config& c, Layout layout, std::vector<AuditRow>& rows) {
  for (int64_t i = 0; i < c.processes; ++i) {
    const Json plan = plan_of_a_process(c, layout);
    for (AuditRow& r : rows) {
      const Json& kernels = plan["steps"][0]["kernels"];
      r.alike += r.place < kernels.size() && kernels[r.place]["kernel"] == r.by[0].kind &&
                         kernels[r.place]["output"] == r.by[0].output &&
                         kernels[r.place]["algorithm"] == r.by[0].algorithm
                     ? 1
                     : 0;
    }
  }
}

std::string cell(const PlannedKernel& k) {
  const std::string name = k.provider == Provider::kCudnn ? k.algorithm.substr(sizeof("cudnn_") - 1) : k.algorithm;
  return fmt::format("{:<15}{:>7.1f} {:<2}", name, static_cast<double>(k.workspace_bytes) / 1e6, flags_of(k));
}

void print(const Config& c, Layout layout, const std::vector<AuditRow>& rows) {
  size_t width = 33;
  for (const AuditRow& r : rows) width = std::max(width, shapes_of(r, rows).size());
  fmt::print("\n{}\n{:<27} {:<{}}", to_string(layout), "kernel", "shapes", width);
  for (const Search s : kAuditedPolicies) fmt::print(" {:<25}", to_string(KernelChoice{.search = s}));
  fmt::print("{}\n", c.processes ? "  alike" : "");
  for (const AuditRow& r : rows) {
    fmt::print("{:<27} {:<{}}", r.by[0].kind, shapes_of(r, rows), width);
    for (const PlannedKernel& k : r.by) fmt::print(" {}", cell(k));
    if (c.processes) fmt::print(" {:>3}/{}", r.alike, c.processes);
    fmt::print("\n");
  }
  fmt::print("\n");
  for (size_t i = 0; i < kAuditedPolicies.size(); ++i) {
    size_t most = 0, other = 0, nondeterministic = 0, without = 0;
    for (const AuditRow& r : rows) {
      most = std::max(most, r.by[i].workspace_bytes);
      other += engine_of(r.by[i].algorithm) != engine_of(r.by[0].algorithm);
      nondeterministic += r.by[i].notes.find("nondeterministic") != std::string::npos;
      without += r.by[i].provider != Provider::kCudnn;
    }
    fmt::print(
        "{:<14} largest workspace {:>7.1f} MB; {} of {} kernels by another engine than heuristic's; {} "
        "nondeterministic; "
        "{} by our own\n",
        to_string(KernelChoice{.search = kAuditedPolicies[i]}), static_cast<double>(most) / 1e6, other, rows.size(),
        nondeterministic, without);
  }
  if (c.processes) {
    const auto unstable = std::ranges::count_if(rows, [&](const AuditRow& r) { return r.alike != c.processes; });
    fmt::print("{} processes choose {} by the heuristic\n", c.processes,
               unstable ? fmt::format("otherwise in {} of {} kernels", unstable, rows.size()) : "alike");
  }
}

Json json_of(const PlannedKernel& k) {
  return {{"provider", to_string(k.provider)},
          {"algorithm", k.algorithm},
          {"notes", k.notes},
          {"workspace_bytes", k.workspace_bytes}};
}

Json json_of(Layout layout, const std::vector<AuditRow>& rows) {
  Json all = Json::array();
  for (const AuditRow& r : rows) {
    Json j{{"kernel", r.by[0].kind},
           {"shapes", r.by[0].shapes},
           {"output", r.by[0].output},
           {"inputs", r.by[0].in.size()}};
    for (size_t i = 0; i < kAuditedPolicies.size(); ++i)
      j[to_string(KernelChoice{.search = kAuditedPolicies[i]})] = json_of(r.by[i]);
    j["processes_alike"] = r.alike;
    all.push_back(std::move(j));
  }
  return {{"layout", to_string(layout)}, {"kernels", all}};
}

void audit(Config c) {
  check_outputs({{"--json", c.json}}, {{"--on", c.on.ends_with(".json") ? c.on : ""}});
  if (c.model == "vgg") c.model = "vgg16";
  const auto [device, driver, roofs, libraries] = planning_on(c.on, "audit plans");
  fmt::print("{}, a training step, batch {}, {}, {}, on {} (described: nothing runs, so that nothing is measured)\n",
             c.model, c.batch, to_string(c.precision), whose(c.kernels), runtime_of(device).properties().name);
  for (const std::string& v : libraries) fmt::print("planned by {}\n", v);
  fmt::print("driver: {}\nMB of workspace; {}\n", driver, kFlags);
  Json layouts = Json::array();
  for (const Layout layout : layouts_of(c)) {
    std::vector<AuditRow> rows = rows_of(steps_of(c, layout, device, roofs));
    if (c.processes) count_alike(c, layout, rows);
    print(c, layout, rows);
    layouts.push_back(json_of(layout, rows));
  }
  if (c.json.empty()) return;
  Json j = environment_json(device);
  j["libraries"] = libraries, j["driver"] = driver;
  j["model"] = c.model, j["batch"] = c.batch, j["dtype"] = to_string(c.precision),
  j["kernels"] = to_string(c.kernels.set);
  j["processes"] = c.processes, j["layouts"] = layouts;
  write_json(c.json, j);
}

}  // namespace

void add_audit(const CommandLine& plumb) {
  const CommandLine cmd = plumb.subcommand("audit", "Audit what policies choose: audit plans MODEL --on GPU");
  auto c = std::make_shared<Config>();
  auto what = std::make_shared<std::string>();
  cmd.add("what", *what, {.text = "plans", .is_required = true});
  add_model_option(cmd, c->model);
  add_device_description_option(cmd, c->on);
  add_choice(cmd, "--layout", c->layout, kPublicLayouts, {"Of the images, [nchw, then nhwc]: "});
  add_dtype_option(cmd, c->precision);
  add_batch_option(cmd, c->batch, "Images of a step");
  add_choice(cmd, "--kernels", c->kernels.set, kKernelSets, {"Whose kernels may run: "});
  add_workspace_option(cmd);
  add_whole<int64_t>(cmd, "--processes", c->processes,
                     "How many choose by the heuristic, to be held against each other", 0, 1000);
  cmd.add("--json", c->json, {"Write all of it to this file"});
  cmd.calls([c, what] {
    PLUMB_CHECK(*what == "plans", "audit: {} is unknown; use plans", plumb::detail::in_quotes(*what));
    audit(*c);
  });
}

}  // namespace plumb::app
