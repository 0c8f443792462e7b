// plumb_bench_worker: the Plumbline side of the comparison. Answers the requests that workers/serve.py describes, one
// JSON object a line, and beyond them makes the tensors that every side reads, and says which kernels ran.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/compare/plumbline/defaults.h"
#include "bench/compare/plumbline/job.h"
#include "bench/compare/plumbline/kernels_seen.h"
#include "bench/compare/plumbline/tensor_files.h"
#include "core/context.h"
#include "core/device.h"
#include "core/file.h"
#include "core/stopwatch.h"
#include "dispatch/machine.h"
#include "kernels/threads.h"
#include "measure/command/command_line.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "measure/command/values.h"
#include "measure/device_roofs.h"
#include "measure/roofs.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

// Where jobs run, or why they cannot: a refusal of each job, and not of the process, so that every side has a row.
struct Place {
  Device device;
  std::string missing;
};

Place place_of(const std::string& name) {
  try {
    const Device device = device_from_string(name);
    device_library_versions(device);  // opens them; a sentence where one is missing
    return {device, ""};
  } catch (const Error& e) {
    return {Device(), e.what()};
  }
}

class Worker {
 public:
  explicit Worker(Place place) : place_(std::move(place)) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "make") {
      make_inputs(request);
      return json::object();
    }
    if (what == "defaults") return {{"defaults", defaults()}};
    if (what == "pulse") return {{"seconds", pulse_s()}};
    if (!place_.missing.empty()) return {{"error", place_.missing}, {"kind", "absent"}};
    const DeviceScope there(place_.device);
    if (what == "roofs") return roofs();
    if (what == "prepare") return prepare_job(request);
    if (what == "run") return job_of(request).run(request);
    if (what == "epoch") return job_of(request).epoch(request);
    if (what == "train") return job_of(request).train(request.at("calls"), request.at("inputs"), request.at("results"));
    if (what == "losses") return job_of(request).losses(request.at("steps"));
    PLUMB_CHECK(what == "drop", "there is no request {}", detail::in_quotes(what));
    jobs_.erase(request.at("job").get<std::string>());
    return json::object();
  }

 private:
  Job& job_of(const json& request) {
    const std::string name = request.at("job");
    const auto job = jobs_.find(name);
    PLUMB_CHECK(job != jobs_.end(), "there is no job {}; prepare it", detail::in_quotes(name));
    return *job->second;
  }

  // An emulated device has those of the host.
  json roofs() const {
    if (command::has_tensor_cores(place_.device)) {
      const measure::DeviceRoofs r = measure::measure_roofs(place_.device);
      return {{"f32_gflops", r.f32 / 1e9}, {"bf16_gflops", r.bf16 / 1e9}, {"copy_gbytes", r.bytes / 1e9}};
    }
    const DeviceScope host{Device()};
    const measure::Roofs r = measure::measure_roofs();
    return {{"f32_gflops", r.gflops()}, {"bf16_gflops", r.gflops(DType::kBf16)}, {"copy_gbytes", r.copy_gbytes}};
  }

  json prepare_job(const json& request) {
    const detail::Stopwatch build;
    const Mode mode = mode_of(request.at("mode"));
    auto work = compare::prepare(request.at("problem"), read_tensors(request.at("inputs")), mode);
    auto job = std::make_unique<Job>(std::move(work), place_.device, request.value("inject", json::object()));
    const double built_s = build.seconds();
    Tensors results;
    KernelsSeen kernels;  // of the one step that changes no weight
    const double first_s = detail::seconds_of([&] {
      const ObserverScope observed(&kernels);
      results = job->work().results();
      job->wait();
    });
    write_tensors(request.at("results"), results);
    json reply = job->work().facts();
    reply["built_s"] = built_s;
    reply["first_s"] = first_s;
    reply["kernels"] = kernels.list();
    check_ran(mode.algorithm, reply["kernels"]);
    jobs_[request.at("job")] = std::move(job);
    return reply;
  }

  Place place_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;
};

json hello(const Place& place) {
  json environment = command::environment_json(place.device);
  json h = {
      {"engine", "plumbline"},
      {"version", message("{}+kernels.{}", version(), detail::kernels_digest())},
      {"modes", {"best", "vendor", "reference", "captured", "charged", "heuristic", "deterministic", "only:ALGORITHM"}},
      {"allocator", "plumbline"},
      {"threads", threads()},
      {"denormals", "flushed to 0"},  // by run_program
      {"environment", environment}};
  if (!place.missing.empty()) h["missing"] = place.missing;
  return h;
}

json answer_or_refusal(Worker& worker, const std::string& line) {
  try {
    return worker.answer(json::parse(line));
  } catch (const std::bad_alloc&) {
    return {{"error", "out of memory"}, {"kind", "memory"}};
  } catch (const std::exception& e) {
    const std::string why = detail::on_one_line(e.what());
    return {{"error", why}, {"kind", why.starts_with("out of memory") ? "memory" : "failed"}};
  }
}

int serve(const std::string& device) {
  std::FILE* replies = fdopen(dup(1), "w");
  PLUMB_CHECK(replies, "the standard output is closed; replies go there");
  dup2(2, 1);  // what libraries print cannot be taken for a reply
  const auto say = [replies](const json& reply) {
    std::fflush(stdout);
    // A message may quote what is not UTF-8.
    std::fputs((reply.dump(-1, ' ', false, json::error_handler_t::replace) + "\n").c_str(), replies);
    PLUMB_CHECK(std::fflush(replies) == 0, "a reply cannot be written: {}", std::strerror(errno));
  };
  const Place place = place_of(device);
  say(hello(place));
  Worker worker(place);
  for (std::string line; std::getline(std::cin, line);) say(answer_or_refusal(worker, line));
  return 0;
}

}  // namespace
}  // namespace plumb::compare

int main(int argc, char** argv) {
  using namespace plumb;
  return command::run_program("plumb_bench_worker", [&] {
    const command::CommandLine cli("Answers the requests of scripts/compare", "plumb_bench_worker");
    std::string device = "cpu";
    cli.add("--device", [&device](const std::string& text) { device = text; },
            {"Where jobs run: cpu, cuda or cuda:N; what is made and checked beside them stays on the host", device});
    command::add_threads_option(cli);
    return cli.parse(argc, argv) ? compare::serve(device) : 0;
  });
}
