// plumb_bench_worker: the Plumbline side of the comparison. Answers the requests that workers/serve.py describes, one
// JSON object a line, and beyond them makes the tensors that every side reads, and says which kernels ran.
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/allocations.h"
#include "bench/compare/plumbline/defaults.h"
#include "bench/compare/plumbline/epochs.h"
#include "bench/compare/plumbline/kernels_seen.h"
#include "bench/compare/plumbline/work.h"
#include "bench/peak_memory.h"
#include "core/memory.h"
#include "core/stopwatch.h"
#include "dispatch/machine.h"
#include "kernels/threads.h"
#include "measure/command/command_line.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "measure/roofs.h"
#include "models/safetensors.h"
#include "models/weights.h"
#include "ops/convert.h"
#include "ops/fill.h"
#include "ops/random.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

Tensors read_tensors(const std::string& file) {
  Tensors tensors;
  for (models::NamedTensor& t : models::load_safetensors(file).tensors) tensors[t.name] = t.tensor;
  return tensors;
}

void write_tensors(const std::string& file, const Tensors& tensors) {
  std::vector<models::NamedTensor> list;
  for (const auto& [name, tensor] : tensors) list.push_back({name, tensor});
  models::save_safetensors(file, list);
}

// {"file", "seed", "network" and whose "initial" distribution its weights have, or neither, "inputs": {name: {"shape",
// "low", "high", "classes"}}}: random tensors, and a network's weights in its first distribution (but for what is to be
// one number, low = high) with its running statistics.
json make_inputs(const json& request) {
  Tensors tensors;
  if (request.contains("network")) {
    const auto network = models::make_network(request["network"].get<std::string>(), request["seed"].get<uint64_t>(),
                                              convention_from_string(request["initial"].get<std::string>()));
    for (const auto* list : {&network->parameters(), &network->buffers()}) {
      for (const models::NamedTensor& t : *list) tensors[t.name] = t.tensor;
    }
  }
  uint64_t seed = request["seed"].get<uint64_t>() * 1000;
  for (const auto& [name, t] : request["inputs"].items()) {
    ++seed;
    const auto low = t["low"].get<double>(), high = t["high"].get<double>();
    if (tensors.contains(name) && low < high) continue;
    const auto extents = t["shape"].get<std::vector<int64_t>>();
    const Shape shape{std::span<const int64_t>(extents)};
    const auto classes = t["classes"].get<int64_t>();
    tensors[name] = classes > 0  ? uniform(TensorSpec(shape, DType::kI64), 0, static_cast<double>(classes - 1), seed)
                    : low < high ? uniform(TensorSpec(shape), low, high, seed)
                                 : full(TensorSpec(shape), low);
  }
  write_tensors(request["file"], tensors);
  return json::object();
}

struct Counters {
  int64_t page_faults, switches, allocations;
  double user_s, system_s;
};

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

Counters counters() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return {u.ru_minflt + u.ru_majflt, u.ru_nivcsw, bench::allocation_count(), seconds(u.ru_utime), seconds(u.ru_stime)};
}

// Bytes by class when their sum was largest, since the process began.
json memory_by_class() {
  const MemoryStats stats = cpu_memory().stats();
  json bytes = json::object();
  for (int i = 0; i < kMemoryClassCount; ++i) {
    bytes[to_string(static_cast<MemoryClass>(i))] = stats.at_peak_bytes[static_cast<size_t>(i)];
  }
  return bytes;
}

// The clock that all processes share.
double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A known cost that is added to a step: a sleep, a copy, a conversion of layout.
class Fault {
 public:
  explicit Fault(const json& inject)
      : sleep_s_(inject.value("sleep_s", 0.0)),
        source_(inject.value("copy_bytes", size_t{0}), 1),
        target_(source_.size()),
        images_(ones(Shape{inject.value("convert_bytes", int64_t{0}) / (4 * 64 * 1024), 64, 32, 32})) {}

  void operator()() const {
    if (sleep_s_ > 0) usleep(static_cast<useconds_t>(1e6 * sleep_s_));
    if (!source_.empty()) std::memcpy(target_.data(), source_.data(), source_.size());
    if (images_.numel() > 0) to(images_, Layout::kNhwc);
  }

 private:
  double sleep_s_;
  std::vector<char> source_;
  mutable std::vector<char> target_;
  Tensor images_;
};

// A prepared job, and how many calls of it make a sample that the clock can see.
class Job {
 public:
  Job(std::unique_ptr<Work> work, const json& inject) : work_(std::move(work)), fault_(inject) {}

  Work& work() { return *work_; }

  json run(int samples, double least_s) {
    if (calls_ == 0) calls_ = calls_for(least_s);
    std::vector<double> times;
    times.reserve(static_cast<size_t>(samples));
    const double began = monotonic_s();
    const Counters before = counters();
    for (int i = 0; i < samples; ++i) times.push_back(seconds_of_calls() / calls_);
    const Counters after = counters();
    const double ended = monotonic_s();
    const double n = static_cast<double>(samples) * calls_;
    return {{"samples_s", times},
            {"calls", calls_},
            {"began", began},
            {"ended", ended},
            {"peak_bytes", bench::peak_rss_bytes()},
            {"memory", memory_by_class()},
            {"page_faults", static_cast<double>(after.page_faults - before.page_faults) / n},
            {"allocations", static_cast<double>(after.allocations - before.allocations) / n},
            {"switches", static_cast<double>(after.switches - before.switches) / n},
            {"user_s", (after.user_s - before.user_s) / n},
            {"system_s", (after.system_s - before.system_s) / n}};
  }

  json epoch(const json& request) {
    epochs_.read(request["data"], request["orders"]);
    return epochs_.run(*work_, request["epoch"], request["scored"]);
  }

  json fault(int times) const {
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < times; ++i) least = std::min(least, detail::seconds_of(fault_));
    return {{"seconds", least}};
  }

  // Those of the first steps, the one that preparing has done among them.
  json losses(size_t steps) {
    while (work_->losses().size() < steps) step();
    return {{"losses",
             std::vector<double>(work_->losses().begin(), work_->losses().begin() + static_cast<ptrdiff_t>(steps))}};
  }

  json profile(int steps) {
    KernelsSeen kernels;
    const ObserverScope observed(&kernels);
    const double s = detail::seconds_of([&] {
      for (int i = 0; i < steps; ++i) step();
    });
    return {{"seconds", s / steps}, {"steps", steps}, {"kernels", kernels.list()}};
  }

 private:
  void step() {
    work_->step();
    fault_();
  }
  double seconds_of_calls() {
    return detail::seconds_of([this] {
      for (int c = 0; c < calls_; ++c) step();
    });
  }
  int calls_for(double least_s) {
    constexpr int kMost = 1 << 20;
    for (calls_ = 1; seconds_of_calls() < least_s && calls_ < kMost;) calls_ *= 2;
    return calls_;
  }

  std::unique_ptr<Work> work_;
  Fault fault_;
  Epochs epochs_;
  int calls_ = 0;
};

// What the processor's clock makes of a fixed number of additions, each waiting for the one before: the least of some.
double pulse_s() {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 5; ++i) {
    volatile uint64_t sum = 0;
    least = std::min(least, detail::seconds_of([&] {
                       for (int k = 0; k < 200'000; ++k) sum = sum + 1;
                     }));
  }
  return least;
}

class Worker {
 public:
  json answer(const json& request) {
    const std::string what = request["do"];
    if (what == "make") return make_inputs(request);
    if (what == "roofs") return roofs();
    if (what == "defaults") return {{"defaults", defaults()}};
    if (what == "pulse") return {{"seconds", pulse_s()}};
    if (what == "prepare") return prepare_job(request);
    const std::string name = request["job"];
    if (what == "drop") {
      jobs_.erase(name);
      return json::object();
    }
    Job& job = *jobs_.at(name);
    if (what == "run") return job.run(request["samples"], request["least_s"]);
    if (what == "fault") return job.fault(request["times"]);
    if (what == "epoch") return job.epoch(request);
    if (what == "losses") return job.losses(request["steps"]);
    if (what == "profile") return job.profile(request["steps"]);
    fail("there is no request {}", what);
  }

 private:
  static json roofs() {
    const measure::Roofs r = measure::measure_roofs();
    return {{"f32_gflops", r.gflops()}, {"bf16_gflops", r.gflops(DType::kBf16)}, {"copy_gbytes", r.copy_gbytes}};
  }

  json prepare_job(const json& request) {
    const detail::Stopwatch build;
    const Mode mode = mode_of(request["mode"]);
    auto work = compare::prepare(request["problem"], read_tensors(request["inputs"]), mode);
    auto job = std::make_unique<Job>(std::move(work), request.value("inject", json::object()));
    const double built_s = build.seconds();
    Tensors results;
    const double first_s = detail::seconds_of([&] { results = job->work().results(); });
    write_tensors(request["results"], results);
    json reply = job->work().facts();
    reply["built_s"] = built_s;
    reply["first_s"] = first_s;
    reply["kernels"] = job->profile(1)["kernels"];
    check_ran(mode.algorithm, reply["kernels"]);
    jobs_[request["job"]] = std::move(job);
    return reply;
  }

  std::map<std::string, std::unique_ptr<Job>> jobs_;
};

json hello() {
  return {
      {"engine", "plumbline"},
      {"version", version()},
      {"modes", {"best", "vendor", "reference", "captured", "charged", "heuristic", "deterministic", "only:ALGORITHM"}},
      {"allocator", "plumbline"},
      {"threads", threads()},
      {"environment", command::environment_json()}};
}

json answer_or_refusal(Worker& worker, const std::string& line) {
  try {
    return worker.answer(json::parse(line));
  } catch (const std::bad_alloc&) {
    return {{"error", "out of memory"}, {"kind", "memory"}};
  } catch (const std::exception& e) {
    return {{"error", detail::on_one_line(e.what())}, {"kind", "failed"}};
  }
}

int serve() {
  std::FILE* replies = fdopen(dup(1), "w");
  dup2(2, 1);  // what libraries print cannot be taken for a reply
  const auto say = [replies](const json& reply) {
    std::fflush(stdout);
    fmt::print(replies, "{}\n", reply.dump());
    std::fflush(replies);
  };
  say(hello());
  Worker worker;
  for (std::string line; std::getline(std::cin, line);) say(answer_or_refusal(worker, line));
  return 0;
}

}  // namespace
}  // namespace plumb::compare

int main(int argc, char** argv) {
  using namespace plumb;
  return command::run_program("plumb_bench_worker", [&] {
    const command::CommandLine cli("Answers the requests of scripts/compare", "plumb_bench_worker");
    command::add_threads_option(cli);
    return cli.parse(argc, argv) ? compare::serve() : 0;
  });
}
