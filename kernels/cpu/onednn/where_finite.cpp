#include "kernels/cpu/onednn/where_finite.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

// The least finite number is what oneDNN's maxima begin with, and no element is larger than: kFinite refuses it, too.
template <class T>
constexpr float kLargest = 0;
template <>
constexpr float kLargest<float> = std::numeric_limits<float>::max();
template <>
constexpr float kLargest<Bfloat16> = 0x1.fep127f;

// The loop has no branches, so that it is vectorised. A comparison with NaN is false, so NaN is refused.
template <class T, Takes takes>
bool are_taken(const T* x, int64_t n) {
  std::atomic<bool> taken = true;
  parallel_for(n, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
    constexpr float kLimit = takes == Takes::kFinite ? kLargest<T> : std::numeric_limits<float>::infinity();
    uint32_t refused = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto v = static_cast<float>(x[i]);
      refused |= (takes == Takes::kFinite ? std::abs(v) : v) < kLimit ? 0u : 1u;
    }
    if (refused) taken = false;
  });
  return taken;
}

template <Takes takes>
bool are_all_taken(DType t, const void* x, int64_t n) {
  if (t == DType::kF32) return are_taken<float, takes>(static_cast<const float*>(x), n);
  return are_taken<Bfloat16, takes>(static_cast<const Bfloat16*>(x), n);
}

}  // namespace

std::unique_ptr<Kernel> where_finite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input,
                                     const TensorSpec& spec, Takes takes) {
  if (!kernel) return nullptr;
  const size_t workspace = std::max(kernel->info().workspace_bytes, own->info().workspace_bytes);
  const auto takes_all = takes == Takes::kFinite ? are_all_taken<Takes::kFinite> : are_all_taken<Takes::kMinusInfinity>;
  auto run = [own = std::move(own), takes_all, input, t = spec.dtype, n = spec.numel()](
                 const Kernel& inner, const Launch& l) { (takes_all(t, l.in[input], n) ? inner : *own).run(l); };
  auto either = wrap_kernel(std::move(kernel), "", "+finite", std::move(run));
  either->info().workspace_bytes = workspace;
  return either;
}

}  // namespace plumb::cpu
