#include "kernels/cpu/onednn/where_finite.h"

#include <atomic>
#include <bit>

#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

// Without branches in the loop, so that it is vectorised.
template <class T>
bool are_finite(const T* x, int64_t n) {
  std::atomic<bool> finite = true;
  parallel_for(n, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
    constexpr uint32_t kExponent = 0x7f800000;
    uint32_t found = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x[i]));
      found |= (bits & kExponent) == kExponent ? 1u : 0u;
    }
    if (found) finite = false;
  });
  return finite;
}

class WhereFinite final : public WrapperKernel {
 public:
  WhereFinite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input, const TensorSpec& spec)
      : WrapperKernel(std::move(kernel), "", "+finite"),
        own_(std::move(own)),
        input_(input),
        n_(spec.numel()),
        is_wide_(spec.dtype == DType::kF32) {
    info().workspace_bytes = std::max(info().workspace_bytes, own_->info().workspace_bytes);
  }
  void run(const Launch& l) const override {
    const void* x = l.in[input_];
    const bool finite =
        is_wide_ ? are_finite(static_cast<const float*>(x), n_) : are_finite(static_cast<const Bfloat16*>(x), n_);
    (finite ? inner() : *own_).run(l);
  }

 private:
  std::unique_ptr<Kernel> own_;
  size_t input_;
  int64_t n_;
  bool is_wide_;
};

}  // namespace

std::unique_ptr<Kernel> where_finite(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> own, size_t input,
                                     const TensorSpec& spec) {
  if (!kernel) return nullptr;
  return std::make_unique<WhereFinite>(std::move(kernel), std::move(own), input, spec);
}

}  // namespace plumb::cpu
