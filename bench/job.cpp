#include "bench/job.h"

#include <algorithm>

#include "dispatch/policy.h"
#include "kernels/threads.h"
#include "measure/conv2d_error.h"
#include "measure/device_roofs.h"
#include "measure/roofs.h"

namespace plumb::bench {

using detail::Ref;
namespace {

double flops_of(const Job& j) { return j.kind->flops(j.params.data(), j.in, j.out); }

Policy choice_for(const Job& j, const std::string& algorithm) {
  Policy c = j.policy;
  const bool is_any = algorithm == "measured" || algorithm == "vendor";
  c.search = is_any ? Search::kMeasured : Search::kHeuristic;
  c.algorithm = is_any ? uint16_t{0} : algorithm_id(algorithm);
  c.kernels = algorithm == "vendor" ? KernelSet::kVendor : KernelSet::kAll;
  return c;
}

Ref<PreparedKernel> prepared(const Job& j, const std::string& algorithm) {
  const PolicyScope policy(choice_for(j, algorithm));
  return detail::prepare_kernel(*j.kind, j.params.data(), j.in, j.out);
}

// Whose kernel it is, which of the candidates, and its own name.
std::string label_of(const KernelInfo& info) {
  return std::string(to_string(info.provider)) + " " + info.algorithm + " " + info.name;
}

bool is_winograd(const KernelInfo& info) {
  return (info.algorithm + " " + info.notes).find("winograd") != std::string::npos;
}

// Work without products is in tf32 what it is in f32.
bool is_twice(const Job& j) { return j.policy.math == MathMode::kTf32 && flops_of(j) == 0; }

Candidates candidates_of(const Job& j) {
  Candidates candidates;
  j.kind->offer(j.params.data(), j.in, j.out, j.policy, threads(), candidates);
  return candidates;
}

// Several sets of buffers, used in turn.
struct Rotation {
  Ref<PreparedKernel> kernel;
  std::vector<std::unique_ptr<detail::Scratch>> scratches;
  std::vector<detail::Trial> trials;
  size_t next = 0;
};

}  // namespace

Work described(const Job& j) {
  Work w;
  w.math = j.policy.math;
  w.dtype = j.in.empty() ? j.out[0].dtype : j.in[0].dtype;
  w.flops = flops_of(j);
  w.read_bytes = detail::read_bytes(*j.kind, j.in);
  w.written_bytes = bytes_of(j.out) + j.updated_bytes;
  w.in_place = j.updated_bytes > 0;
  return w;
}

std::vector<std::string> algorithms_of(const Job& j) {
  std::vector<std::string> names;
  const Candidates candidates = candidates_of(j);
  for (const auto& c : candidates.all()) names.push_back(c.algorithm);
  if (names.size() > 1) std::erase(names, "reference");
  return names;
}

std::string measured_algorithm(const Job& j) { return prepared(j, "measured")->kernel->info().algorithm; }

Work kernel_work(const Job& j, const std::string& algorithm) {
  auto r = std::make_shared<Rotation>();
  r->kernel = prepared(j, algorithm);
  const KernelInfo& info = r->kernel->kernel->info();
  if (algorithm == "vendor" ? !is_vendor(info.provider) : algorithm != "measured" && info.algorithm != algorithm)
    return {};
  Work w = described(j);
  const Device device = j.policy.device;
  w.turns = w.flops > 0 ? 1 : measure::sets_beyond_caches(w.read_bytes + (w.in_place ? 0 : w.written_bytes), device);
  // A device's copy reads as much as it writes; what does mostly one of them may be somewhat faster.
  if (w.flops == 0 && !device.is_cpu())
    w.judged = std::max(w.read_bytes, w.written_bytes) < 4 * std::min(w.read_bytes, w.written_bytes);
  for (int i = 0; i < w.turns; ++i) {
    r->scratches.push_back(std::make_unique<detail::Scratch>(j.in, j.out, j.values, device));
    r->trials.emplace_back(*r->scratches.back(), j.in, *r->kernel->kernel);
    w.held_bytes += r->scratches.back()->bytes();
  }
  w.label = label_of(info);
  w.nominal = is_winograd(info);
  if (w.nominal && device.is_cpu()) {
    w.error = [r] { return measure::conv2d_error(*r->kernel, r->scratches[0]->in(), r->scratches[0]->out()[0]); };
  }
  w.conversions = info.conversions + static_cast<int>(info.packs.size());
  w.run = [r](Runtime::Stream stream) {
    r->trials[r->next].run(stream);
    if (++r->next == r->trials.size()) r->next = 0;
  };
  return w;
}

Work eager_work(const Job& j, std::function<void()> run) {
  const Ref<PreparedKernel> p = prepared(j, "measured");
  const KernelInfo& info = p->kernel->info();
  Work w = described(j);
  w.label = label_of(info);
  w.nominal = is_winograd(info);
  w.can_be_captured = false;  // the memory of its output is found while it runs
  w.conversions = info.conversions + static_cast<int>(info.packs.size());
  w.held_bytes = w.read_bytes + w.written_bytes;
  w.judged = w.flops > 0;  // its output is the same memory every time
  w.run = [run = std::move(run), policy = choice_for(j, "measured")](Runtime::Stream) {
    const PolicyScope scope(policy);
    const NoGrad no_grad;
    run();
  };
  return w;
}

void add_kernel_rows(const Path& path, const Job& j) {
  if (is_twice(j)) return;
  add_row(path("measured"), [j] { return kernel_work(j, "measured"); });
  const auto names = algorithms_of(j);
  if (names.size() < 2) return;
  for (const std::string& name : names) {
    add_row(path(name), [j, name] { return kernel_work(j, name); });
  }
  const auto is_vendors = [](const Candidates::Candidate& c) { return is_vendor(c.provider); };
  if (std::ranges::any_of(candidates_of(j).all(), is_vendors)) {
    add_row(path("vendor"), [j] { return kernel_work(j, "vendor"); });
  }
}

void add_eager_row(const Path& path, const Job& j, std::function<std::function<void()>()> make) {
  add_row(path("eager"), [j, make = std::move(make)] { return eager_work(j, make()); });
}

void add_apart_row(const Path& path, const Job& j, std::function<std::function<void()>()> make) {
  add_row(path("apart"), [j, make = std::move(make)] {
    Work w = eager_work(j, make());
    w.label = "several ops";  // and not the one kernel, which stands in another row
    w.nominal = true;         // one of them may be Winograd's
    w.conversions = 0;
    w.judged = false;  // it moves more than the one kernel
    return w;
  });
}

void add_floor_row(const Path& path, const Work& work) {
  add_row(path("copy_floor"), [work] {
    Work w = work;
    w.judged = false;
    w.held_bytes = w.read_bytes + w.written_bytes;
    const Device device = detail::ctx.policy.device;
    if (device.is_cpu()) {
      auto floor = std::make_shared<measure::CopyFloor>(w.read_bytes, w.written_bytes, w.in_place);
      w.label = floor->way();
      w.turns = floor->sets();
      w.run = [floor](Runtime::Stream) { floor->run(); };
    } else {
      auto copy = std::make_shared<measure::DeviceCopy>(device, w.read_bytes + w.written_bytes);
      w.label = copy->way();
      w.turns = copy->sets();
      w.run = [copy](Runtime::Stream stream) { copy->run(stream); };
    }
    return w;
  });
}

void add_memory_rows(const Path& path, const Job& j) {
  if (is_twice(j)) return;
  add_kernel_rows(path, j);
  add_floor_row(path, described(j));
}

}  // namespace plumb::bench
