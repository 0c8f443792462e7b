#include "tests/support/kernel_check.h"

#include <cmath>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/runtime.h"
#include "dispatch/machine.h"
#include "dispatch/pack.h"
#include "dispatch/policy.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"

namespace plumb::test {

bool has_avx512() { return cpu_isa().find("avx512f") != std::string::npos; }

namespace {

using Specs = std::vector<TensorSpec>;

// What is known of algorithms when the program begins has smaller numbers: the library's own names.
const uint16_t kFirstUnknown = register_algorithm("first_unknown_at_the_begin");

// The engine of a cuDNN algorithm ("cudnn_e38" of "cudnn_e38_7"): one setting of each engine is checked.
std::string engine_of(const std::string& algorithm) {
  return algorithm.substr(0, algorithm.find('_', sizeof("cudnn_e") - 1));
}

// A kernel with the specs that it was made for.
struct Made {
  std::string algorithm;
  std::unique_ptr<Kernel> kernel;
  bool deterministic = true;
};
struct Problem {
  const PreparedKernel& prepared;
  Specs in, out;
  Policy policy;

  // Null candidates declined. Parameters and specs must outlive the candidates, as they do in the gate.
  std::vector<Made> candidates() const {
    Candidates offered;
    prepared.kind->offer(prepared.params.data(), in, out, policy, detail::threads_of(policy), offered);
    std::vector<Made> made;
    std::set<std::string> engines;
    for (const auto& c : offered.all()) {
      if (c.algorithm.starts_with("cudnn_e") && !engines.insert(engine_of(c.algorithm)).second) continue;
      if (auto kernel = c.make()) made.push_back({c.algorithm, std::move(kernel), c.deterministic});
    }
    return made;
  }
};

struct Result {
  std::vector<Tensor> in, out;  // after the run: kernels may write inputs
  bool intact = true;
  int64_t launches = 0;
};

int64_t launches_of(Device d) { return d.is_cpu() ? 0 : runtime_of(d).counts().launches; }

// A copy of device memory as a host tensor.
Tensor copy_of(const void* data, const TensorSpec& spec, Device device) {
  Tensor t = Tensor::empty(spec);
  detail::copy_bytes(t.value->data, {}, data, device, spec.bytes());
  return t;
}

// The pack of a plain input, also in guarded memory.
Guarded packed(const TensorSpec& plain, const Guarded& data, Layout layout, Device device, bool& intact) {
  const auto packer = detail::make_packer(plain, layout);
  Guarded pack(detail::pack_bytes(layout), device), workspace(packer->info().workspace_bytes, device);
  void *from = data.data(), *to = pack.data();
  packer->run({&from, &to, workspace.data(), device.is_cpu() ? nullptr : runtime_of(device).stream()});
  intact &= pack.intact() && workspace.intact();
  return pack;
}

// Runs a kernel in guarded memory, on copies of host inputs.
Result run_guarded(const Problem& p, const Kernel& kernel, const std::vector<Tensor>& inputs) {
  Result result;
  const Device device = p.policy.device;
  std::vector<Guarded> in, out;
  for (const Tensor& t : inputs) in.emplace_back(t.value->data, t.bytes(), device);
  for (const TensorSpec& s : p.out) out.emplace_back(s.bytes(), device);
  const Guarded workspace = Guarded::workspace(kernel.info().workspace_bytes, device);
  std::vector<void*> in_data, out_data;
  for (const Guarded& g : in) in_data.push_back(g.data());
  for (const Guarded& g : out) out_data.push_back(g.data());
  std::vector<Guarded> packs;
  for (const PackRequest& r : kernel.info().packs) {
    const auto i = static_cast<size_t>(r.input);
    packs.push_back(packed(p.in[i], in[i], r.layout, device, result.intact));
    in_data[i] = packs.back().data();
  }

  const int64_t launched = launches_of(device);
  kernel.run(
      {in_data.data(), out_data.data(), workspace.data(), device.is_cpu() ? nullptr : runtime_of(device).stream()});
  result.launches = launches_of(device) - launched;

  for (const auto* zone : {&in, &out, &packs}) {
    for (const Guarded& g : *zone) result.intact &= g.intact();
  }
  result.intact &= workspace.intact();
  for (size_t i = 0; i < in.size(); ++i) result.in.push_back(copy_of(in[i].data(), p.in[i], device));
  for (size_t i = 0; i < out.size(); ++i) result.out.push_back(copy_of(out[i].data(), p.out[i], device));
  return result;
}

bool has_pack(const Problem& p) {
  const auto pack = [](const TensorSpec& s) { return is_pack(s.layout); };
  return std::any_of(p.in.begin(), p.in.end(), pack) || std::any_of(p.out.begin(), p.out.end(), pack);
}

// The result of the reference, which is the last candidate, in f64; nothing for packers.
std::optional<Result> oracle(const Problem& p, const std::vector<Tensor>& inputs) {
  if (has_pack(p)) return std::nullopt;
  Problem wide = p;
  wide.policy.device = {};  // the reference runs on the host
  for (Specs* specs : {&wide.in, &wide.out}) {
    for (TensorSpec& s : *specs) {
      if (is_floating(s.dtype)) s.dtype = DType::kF64;
    }
  }
  std::vector<Tensor> converted_inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    converted_inputs.push_back(on_host(converted(inputs[i], wide.in[i].dtype, wide.in[i].layout)));
  const std::vector<Made> made = wide.candidates();
  if (made.empty() || made.back().algorithm != "reference") {
    ADD_FAILURE() << "there is no reference in f64 to hold it against";
    return std::nullopt;
  }
  return run_guarded(wide, *made.back().kernel, converted_inputs);
}

double length_of_sums(const Problem& p) {
  double read = 0, written = 1;
  for (const TensorSpec& s : p.in) read = std::max(read, static_cast<double>(s.numel()));
  if (!p.out.empty()) written = std::max(1.0, static_cast<double>(p.out[0].numel()));
  const double products = p.prepared.kind->flops(p.prepared.params.data(), p.in, p.out) / 2;
  return std::max(1.0, std::max(read, products) / written);
}

std::string key_of(const PreparedKernel& p) {
  std::string key(p.kind->name);
  key.append(reinterpret_cast<const char*>(p.params.data()), p.params.size() * sizeof(uint64_t));
  return key.append(reinterpret_cast<const char*>(p.specs.data()), p.specs.size() * sizeof(TensorSpec));
}

std::string describe(const PreparedKernel& p) {
  std::string text = p.kind->name;
  for (const TensorSpec& s : p.in()) text += " " + to_string(s);
  text += " ->";
  for (const TensorSpec& s : p.out()) text += " " + to_string(s);
  return text;
}

}  // namespace

double amplification(const std::string& algorithm) {
  if (algorithm.ends_with("winograd_f2x2")) return 4;
  if (algorithm.starts_with("cudnn_e17")) return 4;  // which says nothing of itself
  if (algorithm.ends_with("winograd_f4x4") || algorithm.ends_with("winograd_blocked")) return 16;
  return 1;
}

namespace {

// The same for a vendor's kernel, by what it says of itself.
double amplification_of_notes(const std::string& notes) { return notes.find("winograd") != std::string::npos ? 16 : 1; }
// A kernel that adds up sums of parts in the output's dtype rounds so many times as much.
constexpr double kParts = 4;

}  // namespace

std::vector<std::function<void()>>& KernelCheck::runs() {
  static std::vector<std::function<void()>> all(2, [] {});
  return all;
}

void KernelCheck::after(const PreparedKernel& prepared, const Launch& launch) {
  if (!keys_.insert(key_of(prepared)).second) return;
  SCOPED_TRACE(describe(prepared));
  const ObserverScope unwatched(nullptr);
  const Problem p{prepared,
                  {prepared.in().begin(), prepared.in().end()},
                  {prepared.out().begin(), prepared.out().end()},
                  prepared.policy};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < p.in.size(); ++i) {
    // A packed input is taken as a parameter: its plain form is not part of the run, so any numbers do.
    const bool is_packed = std::ranges::any_of(prepared.kernel->info().packs,
                                               [&](const PackRequest& r) { return static_cast<size_t>(r.input) == i; });
    inputs.push_back(is_packed ? on_host(random_tensor(p.in[i], 3)) : copy_of(launch.in[i], p.in[i], p.policy.device));
  }

  const std::optional<Result> expected = oracle(p, inputs);
  std::vector<std::vector<double>> expected_in, expected_out;
  if (expected) {
    for (const Tensor& t : expected->in) expected_in.push_back(to_doubles(t));
    for (const Tensor& t : expected->out) expected_out.push_back(to_doubles(t));
  }
  const auto is_empty = [](const TensorSpec& s) { return s.numel() == 0; };
  const bool has_empty = std::ranges::any_of(p.in, is_empty) || std::ranges::any_of(p.out, is_empty);
  for (const Made& m : p.candidates()) {
    SCOPED_TRACE("candidate " + m.algorithm + " " + m.kernel->info().name + " " + m.kernel->info().notes);
    checked_.insert(std::string(prepared.kind->name) + ":" + m.algorithm);
    if (p.policy.device.is_cpu() || m.kernel->info().name.starts_with("plumb:")) {
      EXPECT_LT(register_algorithm(m.algorithm), kFirstUnknown) << "it cannot be asked for before it has run once";
    }
    std::vector<Result> results;
    try {
      for (const auto& before : runs()) {
        before();
        results.push_back(run_guarded(p, *m.kernel, inputs));
      }
    } catch (const Error& e) {
      ADD_FAILURE() << "it refuses to run, " << results.size() << " times before it did not: " << e.what();
    }
    runs().front()();  // what runs next is as if nothing had been checked
    if (results.size() < runs().size()) continue;
    const Result& got = results.front();
    if (!p.policy.device.is_cpu() && m.kernel->info().name.starts_with("plumb:")) {
      EXPECT_LE(got.launches, m.kernel->info().launches) << "launches";
      if (!has_empty) {
        EXPECT_EQ(got.launches, m.kernel->info().launches) << "launches";
      }
    }
    for (size_t run = 0; run < results.size(); ++run) {
      EXPECT_TRUE(results[run].intact) << "it wrote outside of its memory, run " << run;
      if (!m.deterministic) continue;
      for (size_t i = 0; i < got.out.size(); ++i)
        EXPECT_TRUE(bitwise_equal(results[run].out[i], got.out[i])) << "output " << i << ", run " << run;
      for (size_t i = 0; i < got.in.size(); ++i)
        EXPECT_TRUE(bitwise_equal(results[run].in[i], got.in[i])) << "input " << i << ", run " << run;
    }
    if (!expected) continue;
    const double amplified = amplification(m.algorithm) * amplification_of_notes(m.kernel->info().notes);
    const double sums = std::sqrt(length_of_sums(p)) * unit_roundoff(DType::kF32) * amplified;
    const bool in_parts = m.kernel->info().notes.find("reduced_precision") != std::string::npos;
    const auto check = [&](const char* what, size_t i, const Tensor& t, const std::vector<double>& wide) {
      const double bound = factor_ * ((in_parts ? kParts : 1) * unit_roundoff(t.dtype()) + sums);
      EXPECT_TRUE(close(to_doubles(t), wide, bound)) << what << " " << i << " against f64";
    };
    for (size_t i = 0; i < got.out.size(); ++i) check("output", i, got.out[i], expected_out[i]);
    for (size_t i = 0; i < got.in.size(); ++i) check("input", i, got.in[i], expected_in[i]);
  }
}

}  // namespace plumb::test
