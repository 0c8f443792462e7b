#include "dispatch/select.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <mutex>
#include <ranges>
#include <set>

#include "core/runtime.h"
#include "dispatch/attempts.h"
#include "dispatch/described.h"
#include "dispatch/machine.h"
#include "dispatch/pack.h"
#include "dispatch/policy.h"
#include "dispatch/timing.h"
#include "dispatch/trial.h"
#include "dispatch/tuning_cache.h"

namespace plumb {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
std::atomic<size_t> limit_of_workspace{kNoLimit};

}  // namespace

void set_workspace_limit(size_t bytes) { limit_of_workspace = bytes; }

size_t workspace_limit(Device device) {
  const size_t set = limit_of_workspace;
  if (set != kNoLimit || device.is_cpu()) return set;
  const DeviceProperties& p = runtime_of(device).properties();
  return p.is_gpu() ? p.memory_bytes / 8 : kNoLimit;
}

namespace detail {
namespace {

struct Made {
  std::string algorithm;
  Provider provider = Provider::kPlumbline;
  std::unique_ptr<Kernel> kernel;
};

// Makes candidates that stay within the workspace limit, with the packers of what they want packed.
class Maker {
 public:
  explicit Maker(const PreparedKernel& p) : p_(p), limit_(workspace_limit(p.policy.device)) {}
  std::unique_ptr<Kernel> operator()(const Candidates::Candidate& c) { return within(c.make()); }
  std::unique_ptr<Kernel> within(std::unique_ptr<Kernel> kernel) {
    if (!kernel || limit_ == kNoLimit) return kernel;
    const size_t wanted = workspace_of(*kernel);
    if (wanted <= limit_) return kernel;
    least_beyond_ = std::min(least_beyond_, wanted);
    return nullptr;
  }
  size_t limit() const { return limit_; }
  /// The smallest workspace that exceeded the limit; kNoLimit if none did.
  size_t least_beyond() const { return least_beyond_; }

 private:
  size_t workspace_of(const Kernel& kernel) const {
    size_t most = kernel.info().workspace_bytes;
    for (const PackRequest& r : kernel.info().packs) {
      const auto packer = make_packer(p_.in()[static_cast<size_t>(r.input)], r.layout);
      most = std::max(most, packer->info().workspace_bytes);
    }
    return most;
  }
  const PreparedKernel& p_;
  size_t limit_, least_beyond_ = kNoLimit;
};

// That a candidate took the device along when it was measured, among the results of measuring: no process measures
// it again, whichever kernels it may choose from.
constexpr char kLost[] = "lost";
std::string loss_by(const std::string& algorithm, const PreparedKernel& p) {
  return work_of(p) + " takes the device along by " + algorithm;
}
bool is_lost_by(const std::string& algorithm, const PreparedKernel& p) {
  const auto is_mark = [](const std::string& result) { return result == kLost; };
  const Device device = p.policy.device;
  return !device.is_cpu() && runtime_of(device).is_present() && find_tuned(device, loss_by(algorithm, p), is_mark);
}

// What kernels are measured on.
struct Trials {
  Scratch scratch;
  std::vector<Trial> all;
  Trials(const PreparedKernel& p, const std::vector<const Kernel*>& kernels)
      : scratch(p.in(), p.out(), {}, p.policy.device), all(Trial::in_turn(scratch, p.in(), kernels)) {}
};

// Takes those of the larger workspaces out. Says whether there were some.
bool drop_greedy(std::vector<Made>& made) {
  const auto workspace = [](const Made& m) { return m.kernel->info().workspace_bytes; };
  const auto [least, most] = std::ranges::minmax(made | std::views::transform(workspace));
  return std::erase_if(made,
                       [&, middle = least + (most - least) / 2](const Made& m) { return workspace(m) > middle; }) > 0;
}

// Which of them is the fastest; none if there is not the memory to find out, beside that of the work under way. Those
// whose workspaces do not fit are taken out.
std::optional<size_t> fastest(const PreparedKernel& p, std::vector<Made>& made) {
  if (!p.policy.device.is_cpu()) {  // what work before this did wrong is not told of a candidate
    Runtime& runtime = runtime_of(p.policy.device);
    runtime.wait(runtime.stream());
  }
  std::optional<Trials> memory;
  while (!memory) {
    std::vector<const Kernel*> kernels;
    for (const Made& m : made) kernels.push_back(m.kernel.get());
    try {
      memory.emplace(p, kernels);
    } catch (const Error&) {
      if (!drop_greedy(made)) return std::nullopt;
    }
  }
  const std::vector<Trial>& trials = memory->all;
  std::vector<Run> runs;
  for (const Trial& t : trials) runs.push_back([&t](Runtime::Stream stream) { t.run(stream); });
  try {
    return fastest_of(p.policy.device, runs).index;
  } catch (const LostDevice& e) {
    const std::string& algorithm = made[e.way].algorithm;
    keep_tuned(p.policy.device, loss_by(algorithm, p), kLost);
    fail("{} of {} was measured, and took the device along ({}); it is left out from now on: run this again", algorithm,
         describe(p), e.what());
  }
}

// Puts nondeterministic candidates last unless their whole name was asked for: otherwise a captured step could differ
// from the eager one.
std::vector<Candidates::Candidate> in_order(const PreparedKernel& p, const Candidates& candidates, KernelSet kernels) {
  std::vector<Candidates::Candidate> order = candidates.all();
  if (p.policy.search == Search::kDeterministic) {
    std::erase_if(order, [](const auto& c) { return !c.deterministic; });
  } else {
    std::stable_partition(order.begin(), order.end(), [](const auto& c) { return c.deterministic; });
  }
  if (p.policy.algorithm) {
    const std::string_view family = algorithm_name(p.policy.algorithm);
    std::stable_partition(order.begin(), order.end(), [&](const auto& c) { return is_of_family(c.algorithm, family); });
  }
  if (kernels == KernelSet::kVendor) {
    std::stable_partition(order.begin(), order.end(), [](const auto& c) { return is_vendor(c.provider); });
  }
  return order;
}

// The first of these candidates that can be made; where a name is given, only one of that name.
Made first_of(const std::vector<Candidates::Candidate>& order, Maker& make, std::string_view name = {}) {
  for (const auto& c : order) {
    if (!name.empty() && c.algorithm != name) continue;
    if (auto kernel = make(c)) return {c.algorithm, c.provider, std::move(kernel)};
  }
  return {};
}

// The first one that did not take the device along when it was measured, unless it is asked for by its whole name.
Made proposed(const PreparedKernel& p, const Candidates& candidates, Maker& make) {
  auto order = in_order(p, candidates, p.policy.kernels);
  const std::string_view name = p.policy.algorithm ? algorithm_name(p.policy.algorithm) : std::string_view();
  std::erase_if(order, [&](const auto& c) { return c.algorithm != name && is_lost_by(c.algorithm, p); });
  return first_of(order, make);
}

// By what a choice is kept: another version that offers other candidates measures again.
std::string key_of(const PreparedKernel& p, KernelSet kernels, const std::vector<Candidates::Candidate>& order) {
  std::string key = describe(p, kernels) + " of";
  for (const auto& c : order) key += " " + c.algorithm;
  return key;
}

Made measured(const PreparedKernel& p, const Candidates& candidates, Maker& make) {
  const auto order = in_order(p, candidates, p.policy.kernels);
  const std::string work = key_of(p, p.policy.kernels, order);
  Made best;
  const auto is_offered = [&](const std::string& algorithm) {
    return (best = first_of(order, make, algorithm)).kernel != nullptr;
  };
  if (find_tuned(p.policy.device, work, is_offered)) return best;
  if (p.policy.kernels == KernelSet::kVendor) {
    // What is the fastest of all is so among the vendor's, if it is one of them.
    const auto is_vendors = [&](const std::string& algorithm) {
      const auto is_it = [&](const auto& c) { return c.algorithm == algorithm && is_vendor(c.provider); };
      return std::ranges::any_of(order, is_it) && is_offered(algorithm);
    };
    const auto all = in_order(p, candidates, KernelSet::kAll);
    if (find_tuned(p.policy.device, key_of(p, KernelSet::kAll, all), is_vendors)) return best;
  }
  // With kVendor, only the vendor's candidates compete, if any applies; among those, only the family that was asked
  // for, if any applies. Plain loops compete only if there is nothing else.
  const std::string_view family = p.policy.algorithm ? algorithm_name(p.policy.algorithm) : std::string_view();
  const auto rank = [&](const auto& c) {
    const bool is_aside = p.policy.kernels == KernelSet::kVendor && !is_vendor(c.provider);
    return 2 * is_aside + !is_of_family(c.algorithm, family);
  };
  std::vector<Made> made;
  std::exception_ptr error;  // the first; of no account if others can be made
  for (int r = 0; r < 4 && made.empty(); ++r) {
    std::vector<const Candidates::Candidate*> wanted, last_resorts;
    for (const auto& c : order) {
      if (rank(c) != r || is_lost_by(c.algorithm, p)) continue;
      const bool is_last_resort = c.provider == Provider::kReference || (!c.deterministic && c.algorithm != family);
      (is_last_resort ? last_resorts : wanted).push_back(&c);
    }
    std::vector<Attempt> attempts = make_all(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (attempts[i].error && !error) error = attempts[i].error;
      if (auto kernel = make.within(std::move(attempts[i].kernel)))
        made.push_back({wanted[i]->algorithm, wanted[i]->provider, std::move(kernel)});
    }
    for (size_t i = 0; i < last_resorts.size() && made.empty(); ++i) {
      const auto& c = *last_resorts[i];
      if (auto kernel = make(c)) made.push_back({c.algorithm, c.provider, std::move(kernel)});
    }
  }
  if (made.empty() && error) std::rethrow_exception(error);
  if (made.size() < 2) return made.empty() ? Made{} : std::move(made[0]);
  release_idle_memory(p.policy.device);  // measuring needs blocks of other sizes than the work before and after it
  const size_t wanted_to = made.size();
  const std::optional<size_t> fastest_one = fastest(p, made);
  const bool is_final = fastest_one && made.size() == wanted_to && !error;  // else another time may tell more
  best = std::move(made[fastest_one.value_or(0)]);
  made.clear();
  memory_of(p.policy.device).trim();
  if (is_final) keep_tuned(p.policy.device, work, best.algorithm);
  return best;
}

struct Chosen {
  std::mutex mutex;
  std::set<std::string> names;
};
Chosen& chosen() {
  static auto* c = new Chosen;
  return *c;
}

void note_chosen(const std::string& algorithm) {
  Chosen& c = chosen();
  const std::lock_guard lock(c.mutex);
  c.names.insert(algorithm);
}

[[noreturn]] void fail_without_kernel(const PreparedKernel& p, const Candidates& candidates, Maker& make) {
  std::string specs;
  bool has_half = false;
  for (const TensorSpec& s : p.in()) {
    specs += (specs.empty() ? "" : ", ") + to_string(s);
    has_half |= s.dtype == DType::kF16;
  }
  if (specs.empty()) specs = "this problem";
  const Device device = p.policy.device;
  const bool is_described = !device.is_cpu() && !runtime_of(device).is_present();
  const std::string place = is_described ? runtime_of(device).properties().name : to_string(device);
  PLUMB_CHECK(make.least_beyond() == kNoLimit,
              "{}: no kernel on {} takes {} within a workspace of {} bytes; allow at least {} bytes", p.kind->name,
              place, specs, make.limit(), make.least_beyond());
  if (p.policy.search == Search::kDeterministic) {
    const auto other = std::ranges::find_if(candidates.all(), [&](const auto& c) { return make(c) != nullptr; });
    PLUMB_CHECK(other == candidates.all().end(),
                "{}: no deterministic kernel on {} takes {}; without Search::kDeterministic {} does", p.kind->name,
                place, specs, other->algorithm);
  }
  fail("{}: no kernel on {} takes {}{}", p.kind->name, place, specs,
       has_half ? "; f16 is for keeping numbers, convert it with to before computing" : "");
}

// Notes the candidate that the author's order puts first, if it was skipped only because it is not deterministic.
void note_passed_over(const PreparedKernel& p, const Candidates& candidates, Maker& make, KernelInfo& info) {
  const std::string_view family = p.policy.algorithm ? algorithm_name(p.policy.algorithm) : std::string_view();
  for (const auto& c : candidates.all()) {
    if (c.algorithm == info.algorithm) return;
    if (c.deterministic || !is_of_family(c.algorithm, family)) continue;
    if (p.policy.kernels == KernelSet::kVendor && !is_vendor(c.provider)) continue;
    const auto kernel = make(c);
    if (!kernel) continue;
    info.passed_over = c.algorithm;
    info.passed_over_workspace_bytes = kernel->info().workspace_bytes;
    return;
  }
}

}  // namespace

bool was_chosen(std::string_view algorithm) {
  Chosen& c = chosen();
  const std::lock_guard lock(c.mutex);
  return std::any_of(c.names.begin(), c.names.end(), [&](const auto& name) { return is_of_family(name, algorithm); });
}

std::unique_ptr<Kernel> select_kernel(const PreparedKernel& p) {
  Candidates candidates;
  p.kind->offer(p.params.data(), p.in(), p.out(), p.policy, threads_of(p.policy), candidates);
  for (const auto& c : candidates.all()) register_algorithm(c.algorithm);
  const Device device = p.policy.device;
  const bool can_measure = device.is_cpu() || runtime_of(device).is_present();
  Maker make(p);
  const bool is_measured = p.policy.search == Search::kMeasured && can_measure;
  Made made = is_measured ? measured(p, candidates, make) : proposed(p, candidates, make);
  if (!made.kernel) fail_without_kernel(p, candidates, make);
  KernelInfo& info = made.kernel->info();
  info.algorithm = made.algorithm;
  note_chosen(info.algorithm);
  info.provider = made.provider;
  info.is_offered_by_vendor =
      std::ranges::any_of(candidates.all(), [](const auto& c) { return is_vendor(c.provider); });
  if (!is_measured) note_passed_over(p, candidates, make, info);
  info.flops = p.kind->flops(p.params.data(), p.in(), p.out());
  info.bytes += static_cast<double>(read_bytes(*p.kind, p.in()) + bytes_of(p.out()));
  return std::move(made.kernel);
}

}  // namespace detail
}  // namespace plumb
