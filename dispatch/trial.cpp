#include "dispatch/trial.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/random.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/pack.h"
#include "dispatch/random_fill.h"

namespace plumb::detail {
Scratch::Scratch(std::span<const TensorSpec> in, std::span<const TensorSpec> out, Values values, Device device)
    : device_(device) {
  for (const TensorSpec& s : in) in_.push_back(filled(s, values));
  for (const TensorSpec& s : out) out_.push_back(filled(s, values));  // spares the first timed run page faults
}

void* Scratch::block(size_t bytes) {
  return blocks_.emplace_back(block_of(bytes, MemoryClass::kWorkspace, device_)).get();
}

size_t Scratch::bytes() const {
  return std::accumulate(blocks_.begin(), blocks_.end(), size_t{0},
                         [](size_t n, const Block& b) { return n + b.get_deleter().bytes; });
}

void* Scratch::filled(const TensorSpec& s, Values values) {
  void* data = block(s.bytes());
  if (!is_floating(s.dtype)) values.low = 0, values.high = static_cast<double>(values.most);
  if (device_.is_cpu()) {
    fill_uniform(data, s.dtype, s.numel(), values.low, values.high, ++seed_);
  } else if (s.numel() > 0) {
    fill_there(data, s, uniform_distribution(s.dtype, values.low, values.high), ++seed_);
  }
  return data;
}

// Uses the device's own kernel, but not through the cache, which may be locked by the measurement that this serves.
void Scratch::fill_there(void* data, const TensorSpec& s, const Distribution& d, uint64_t seed) const {
  const RandomParams params{d.first, d.range, d.kind, seed};
  Policy policy;
  policy.device = device_;
  Candidates candidates;
  kind_of<RandomFill>.offer(&params, {}, {&s, 1}, policy, 1, candidates);
  const auto kernel = candidates.all().front().make();
  kernel->run({nullptr, &data, nullptr, runtime_of(device_).stream()});
}

Trial::Trial(Scratch& scratch, std::span<const TensorSpec> in, const Kernel& kernel, Unbound)
    : kernel_(&kernel), in_(scratch.in()), out_(scratch.out()) {
  for (const PackRequest& r : kernel.info().packs) {
    const auto i = static_cast<size_t>(r.input);
    packers_.push_back({make_packer(in[i], r.layout), i, pack_bytes(r.layout), in_[i], nullptr, nullptr});
  }
}

Trial::Trial(Scratch& scratch, std::span<const TensorSpec> in, const Kernel& kernel)
    : Trial(scratch, in, kernel, Unbound{}) {
  bind(scratch.block(bytes()));
}

std::vector<Trial> Trial::in_turn(Scratch& scratch, std::span<const TensorSpec> in,
                                  std::span<const Kernel* const> kernels) {
  std::vector<Trial> trials;
  size_t most = 0;
  for (const Kernel* k : kernels) {
    trials.push_back(Trial(scratch, in, *k, Unbound{}));
    most = std::max(most, trials.back().bytes());
  }
  void* memory = scratch.block(most);
  if (scratch.device().is_cpu()) std::memset(memory, 0, most);  // or the first trial would pay the page faults for all
  for (Trial& t : trials) t.bind(memory);
  return trials;
}

size_t Trial::bytes() const {
  size_t n = aligned(kernel_->info().workspace_bytes);
  for (const Packer& p : packers_) n += aligned(p.pack_bytes) + aligned(p.kernel->info().workspace_bytes);
  return n;
}

void Trial::bind(void* memory) {
  auto* at = static_cast<char*>(memory);
  const auto take = [&](size_t bytes) { return std::exchange(at, at + aligned(bytes)); };
  workspace_ = take(kernel_->info().workspace_bytes);
  for (Packer& p : packers_) {
    in_[p.input] = p.pack = take(p.pack_bytes);
    p.workspace = take(p.kernel->info().workspace_bytes);
  }
}

void Trial::pack(Runtime::Stream stream) const {
  for (const Packer& p : packers_) p.kernel->run({&p.plain, &p.pack, p.workspace, stream});
}

}  // namespace plumb::detail
