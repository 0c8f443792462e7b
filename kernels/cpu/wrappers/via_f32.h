// Runs f32 kernels on bf16 tensors, where the processor or its library has no fast kernel for bf16.
#pragma once

#include "kernels/cpu/onednn/dnnl.h"

namespace plumb::cpu {

/// Runs a kernel that was made for operands in f32 on these: widens those inputs that are in bf16, and rounds the
/// output if it is to be in bf16. What the kernel wants packed is packed of the widened tensor, and `weights`, the
/// number of an input or -1, is a pack in f32 if it wants none. Null if `kernel` is null or has more than four inputs.
std::unique_ptr<Kernel> via_f32(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in, const TensorSpec& out,
                                int weights = -1);

/// What `offer(problem, candidates)` has; in bf16 also what it has in f32, as "via_f32_...", where that is not one of
/// our kernels that takes bf16 itself: before the vendor's kernels in bf16 where the processor cannot multiply in it.
/// oneDNN 2.x has only plain loops for bf16 without AVX-512, and for some gradients of weights without AMX.
template <class Params, class Offer>
void offer_also_via_f32(const Problem<Params>& p, Candidates& candidates, int weights, const Offer& offer) {
  const TensorSpec& y = p.out[0];
  if (y.dtype != DType::kBf16) return offer(p, candidates);
  const std::vector<TensorSpec> in(p.in.begin(), p.in.end());
  std::vector<TensorSpec> wide_in;
  for (const TensorSpec& s : in) wide_in.push_back(s.with(DType::kF32));
  const TensorSpec wide_y = y.with(DType::kF32);
  Candidates narrow, wide;
  offer(p, narrow);
  offer(Problem<Params>{p.params, wide_in, {&wide_y, 1}, p.threads, p.math, p.device, p.search}, wide);
  const auto add_narrow = [&](bool ours, bool of_vendor) {
    for (const Candidates::Candidate& c : narrow.all()) {
      if (is_vendor(c.provider) ? of_vendor : ours) candidates.add(c.provider, c.algorithm, c.make, c.deterministic);
    }
  };
  const bool is_vendor_first = multiplies_bf16();
  add_narrow(true, is_vendor_first);
  for (const Candidates::Candidate& c : wide.all()) {
    const auto of_same_name = [&](const auto& n) { return !is_vendor(n.provider) && n.algorithm == c.algorithm; };
    const auto own = std::ranges::find_if(narrow.all(), of_same_name);
    const Candidates::Make in_bf16 = own == narrow.all().end() ? Candidates::Make() : own->make;
    const auto make = [in_bf16, make = c.make, in, y, weights]() -> std::unique_ptr<Kernel> {
      if (in_bf16 && in_bf16()) return nullptr;
      return via_f32(make(), in, y, weights);
    };
    candidates.add(c.provider, "via_f32_" + c.algorithm, make, c.deterministic);
  }
  if (!is_vendor_first) add_narrow(false, true);
}

}  // namespace plumb::cpu
