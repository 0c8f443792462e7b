#include "bench/raw_rows.h"

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

// Calls f(run) for those that the library can make within the device's workspace, in its order, until f returns false.
template <class F>
void for_each_of_vendor(const Job& j, F&& f) {
  Candidates candidates;
  j.kind->offer(j.params.data(), j.in, j.out, j.policy, threads(), candidates);
  for (const auto& c : candidates.all()) {
    if (!c.algorithm.starts_with("cudnn") && !c.algorithm.starts_with("cublaslt")) continue;
    auto kernel = c.make();
    if (!kernel || kernel->info().workspace_bytes > workspace_limit(j.policy.device)) continue;
    if (!f(std::make_shared<VendorRun>(j, c.algorithm, std::move(kernel)))) return;
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
  for_each_of_vendor(job, [&](std::shared_ptr<VendorRun> run) {
    first = std::move(run);
    return false;
  });
  return first;
}

std::shared_ptr<VendorRun> fastest_of(const std::vector<Job>& jobs) {
  std::shared_ptr<VendorRun> fastest;
  double least = 1e30;
  for (const Job& job : jobs) {
    for_each_of_vendor(job, [&](std::shared_ptr<VendorRun> run) {
      const auto launch = [&](Runtime::Stream stream) { run->trial.run(stream); };
      try {
        const double seconds = detail::least_seconds(job.policy.device, launch, {{5}});
        if (seconds < least) least = seconds, fastest = std::move(run);
      } catch (const Error&) {  // a plan that turns out not to run
      }
      return true;
    });
  }
  return fastest;
}

}  // namespace

void add_device_raw_rows(const Path& path, const Job& job, const std::vector<Job>& in_all_layouts) {
  add_row(path("raw_same"), [=] { return vendor_work(job, first_of(job)); });
  add_row(path("raw_best"), [=] { return vendor_work(job, fastest_of(in_all_layouts)); });
}

}  // namespace plumb::bench
