#include "kernels/cpu/onednn/where_finite.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

// The loop has no branches, so that it is vectorised. A comparison with NaN is false, so NaN is refused.
template <class T, Takes takes>
bool are_taken(const T* x, int64_t n) {
  std::atomic<bool> taken = true;
  parallel_for(n, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    uint32_t refused = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto v = static_cast<float>(x[i]);
      refused |= (takes == Takes::kFinite ? std::abs(v) : v) < kInfinity ? 0u : 1u;
    }
    if (refused) taken = false;
  });
  return taken;
}

class WhereFinite final : public WrapperKernel {
 public:
  WhereFinite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input, const TensorSpec& spec,
              Takes takes)
      : WrapperKernel(std::move(kernel), "", "+finite"),
        own_(std::move(own)),
        input_(input),
        n_(spec.numel()),
        are_taken_(takes == Takes::kFinite ? of_dtype<Takes::kFinite>(spec.dtype)
                                           : of_dtype<Takes::kMinusInfinity>(spec.dtype)) {
    info().workspace_bytes = std::max(info().workspace_bytes, own_->info().workspace_bytes);
  }
  void run(const Launch& l) const override { (are_taken_(l.in[input_], n_) ? inner() : *own_).run(l); }

 private:
  using AreTaken = bool (*)(const void* x, int64_t n);
  template <Takes takes>
  static AreTaken of_dtype(DType t) {
    if (t == DType::kF32) {
      return [](const void* x, int64_t n) { return are_taken<float, takes>(static_cast<const float*>(x), n); };
    }
    return [](const void* x, int64_t n) { return are_taken<Bfloat16, takes>(static_cast<const Bfloat16*>(x), n); };
  }
  std::unique_ptr<Kernel> own_;
  size_t input_;
  int64_t n_;
  AreTaken are_taken_;
};

}  // namespace

std::unique_ptr<Kernel> where_finite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input,
                                     const TensorSpec& spec, Takes takes) {
  if (!kernel) return nullptr;
  return std::make_unique<WhereFinite>(std::move(kernel), std::move(own), input, spec, takes);
}

}  // namespace plumb::cpu
