#include "kernels/trial.h"

#include <chrono>
#include <numeric>

#include "core/memory.h"
#include "core/random.h"
#include "kernels/pack.h"

namespace plumb {

Scratch::Scratch(std::span<const TensorSpec> in, std::span<const TensorSpec> out, double low, double high) {
  for (const TensorSpec& s : in) in_.push_back(filled(s, low, high));
  for (const TensorSpec& s : out) out_.push_back(filled(s, low, high));  // no page faults in the first timed run
}

Scratch::~Scratch() {
  for (const Block& b : blocks_) cpu_memory().put(b.data, b.bytes, MemoryClass::kWorkspace);
}

void* Scratch::block(size_t bytes) {
  blocks_.push_back({cpu_memory().get(bytes, MemoryClass::kWorkspace), bytes});
  return blocks_.back().data;
}

size_t Scratch::bytes() const {
  return std::accumulate(blocks_.begin(), blocks_.end(), size_t{0},
                         [](size_t n, const Block& b) { return n + b.bytes; });
}

void* Scratch::filled(const TensorSpec& s, double low, double high) {
  void* data = block(s.bytes());
  if (!is_floating(s.dtype)) low = 0, high = 2;
  fill_uniform(data, s.dtype, s.numel(), low, high, ++seed_);
  return data;
}

Trial::Trial(Scratch& scratch, std::span<const TensorSpec> in, const Kernel& kernel)
    : kernel_(&kernel),
      in_(scratch.in()),
      out_(scratch.out()),
      workspace_(scratch.block(kernel.info().workspace_bytes)) {
  for (const PackRequest& r : kernel.info().packs) {
    const auto i = static_cast<size_t>(r.input);
    Packer p{make_packer(in[i], r.layout), in_[i], scratch.block(pack_bytes(r.layout)), nullptr};
    p.workspace = scratch.block(p.kernel->info().workspace_bytes);
    in_[i] = p.pack;
    packers_.push_back(std::move(p));
  }
}

void Trial::pack() const {
  for (const Packer& p : packers_) p.kernel->run({&p.plain, &p.pack, p.workspace});
}

double Trial::operator()() const {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace plumb
