#include "bench/raw_rows.h"

#include <map>

#include "core/error.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/timing.h"
#include "kernels/threads.h"

namespace plumb::bench {

Work raw_work(const Job& job, std::unique_ptr<measure::RawRun> raw) {
  if (!raw) return {};
  const std::shared_ptr<measure::RawRun> shared = std::move(raw);
  Work w = described(job);
  w.label = shared->implementation();
  w.nominal = w.label.find("wino") != std::string::npos;
  w.conversions = shared->conversions();
  w.held_bytes = 2 * (w.read_bytes + w.written_bytes);
  w.run = [shared](Runtime::Stream) { shared->run(); };
  return w;
}

namespace {

// One of the vendor's algorithms by itself: no choice, no packs, no copies around it.
struct VendorRun {
  std::string label;
  std::unique_ptr<const Kernel> kernel;
  detail::Scratch scratch;
  detail::Trial trial;

  VendorRun(const Job& j, const std::string& algorithm, std::unique_ptr<const Kernel> made)
      : label(algorithm),
        kernel(std::move(made)),
        scratch(j.in, j.out, j.values, j.policy.device),
        trial(scratch, j.in, *kernel) {
    if (!kernel->info().notes.empty()) label += " " + kernel->info().notes;
    if (!j.in.empty() && j.in[0].rank() == 4) label += " " + to_string(j.in[0].layout);
  }
};

// Calls f(name, make) for each of the library's algorithms, in its order, until f returns false; make() gives null
// where the library cannot make it within the device's workspace.
template <class F>
void for_each_of_vendor(const Job& j, F&& f) {
  Candidates candidates;
  j.kind->offer(j.params.data(), j.in, j.out, j.policy, threads(), candidates);
  for (const auto& c : candidates.all()) {
    if (!c.algorithm.starts_with("cudnn") && !c.algorithm.starts_with("cublaslt")) continue;
    const auto make = [&]() -> std::shared_ptr<VendorRun> {
      auto kernel = c.make();
      if (!kernel || kernel->info().workspace_bytes > workspace_limit(j.policy.device)) return nullptr;
      return std::make_shared<VendorRun>(j, c.algorithm, std::move(kernel));
    };
    if (!f(c.algorithm, make)) return;
  }
}

Work vendor_work(const Job& job, std::shared_ptr<VendorRun> run) {
  if (!run) return {};
  Work w = described(job);
  w.label = run->label;
  w.nominal = w.label.find("winograd") != std::string::npos;
  w.held_bytes = run->scratch.bytes();
  w.run = [run](Runtime::Stream stream) { run->trial.run(stream); };
  return w;
}

std::shared_ptr<VendorRun> first_of(const Job& job) {
  std::shared_ptr<VendorRun> first;
  for_each_of_vendor(job, [&](const std::string&, const auto& make) {
    first = make();
    return !first;
  });
  return first;
}

// Which of the vendor's plans was found to be the fastest, and for which of several jobs.
struct Found {
  size_t job = 0;
  std::string algorithm;  // "" if there is no plan at all
};

Found search(const std::vector<Job>& jobs) {
  Found found;
  double least = 1e30;
  constexpr double kPlain = 3, kLaunch = 50e-6;  // what takes so many times as long by itself is not worth a replay
  for (size_t i = 0; i < jobs.size(); ++i) {
    for_each_of_vendor(jobs[i], [&](const std::string& algorithm, const auto& make) {
      try {
        const std::shared_ptr<VendorRun> run = make();
        if (!run) return true;
        const auto launch = [&](Runtime::Stream stream) { run->trial.run(stream); };
        detail::Timed work(jobs[i].policy.device, launch);
        if (work.estimate() > kPlain * least + kLaunch) return true;
        const double seconds = detail::spread_of(work, {{5}}).least;
        if (seconds < least) least = seconds, found = {i, algorithm};
      } catch (const Error&) {  // a plan that turns out not to run; one that takes the device along ends the search
        Runtime& runtime = runtime_of(jobs[i].policy.device);
        runtime.wait(runtime.stream());
      }
      return true;
    });
  }
  return found;
}

// A search makes every plan there is, which takes seconds; it is the same for each layout's row.
std::shared_ptr<VendorRun> fastest_of(const Path& path, const std::vector<Job>& jobs) {
  static auto* all = new std::map<std::string, Found>;
  const std::string work = path.op + "/" + path.direction + "/" + path.device + "/" + path.dtype + "/" + path.problem;
  auto at = all->find(work);
  if (at == all->end()) at = all->emplace(work, search(jobs)).first;
  const Found& found = at->second;
  std::shared_ptr<VendorRun> fastest;
  if (found.algorithm.empty()) return fastest;
  for_each_of_vendor(jobs[found.job], [&](const std::string& algorithm, const auto& make) {
    if (algorithm != found.algorithm) return true;
    fastest = make();
    return false;
  });
  return fastest;
}

}  // namespace

void add_device_raw_rows(const Path& path, const Job& job, const std::vector<Job>& in_all_layouts) {
  add_row(path("raw_same"), [=] { return vendor_work(job, first_of(job)); });
  add_row(path("raw_best"), [=] { return vendor_work(job, fastest_of(path, in_all_layouts)); });
}

}  // namespace plumb::bench
