#include "kernels/cpu/wrappers/via_f32.h"

#include "core/memory.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

template <class To, class From>
void convert_all(To* to, const From* from, int64_t n) {
  parallel_for(n, kGrainBytes / 4, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
  });
}

class ViaF32 final : public WrapperKernel {
 public:
  ViaF32(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in, const TensorSpec& out)
      : WrapperKernel(std::move(kernel), "plumb:via_f32:") {
    size_t at = detail::aligned(info().workspace_bytes);
    const auto place = [&](const TensorSpec& s) {
      const size_t begin = at;
      at += detail::aligned(static_cast<size_t>(s.numel()) * sizeof(float));
      return Place{s.numel(), begin};
    };
    for (const TensorSpec& s : in) in_.push_back(place(s));
    out_ = place(out);
    info().workspace_bytes = at;
    info().conversions += static_cast<int>(in.size()) + 1;
  }
  void run(const Launch& l) const override {
    const auto at = [&](const Place& p) {
      return reinterpret_cast<float*>(static_cast<char*>(l.workspace) + p.offset);
    };
    void* in[kMostInputs];
    for (size_t i = 0; i < in_.size(); ++i) {
      convert_all(at(in_[i]), static_cast<const Bfloat16*>(l.in[i]), in_[i].count);
      in[i] = at(in_[i]);
    }
    void* out = at(out_);
    inner().run({in, &out, l.workspace});
    convert_all(static_cast<Bfloat16*>(l.out[0]), at(out_), out_.count);
  }
  static constexpr size_t kMostInputs = 4;

 private:
  struct Place {
    int64_t count = 0;
    size_t offset = 0;
  };
  std::vector<Place> in_;
  Place out_;
};

}  // namespace

std::unique_ptr<Kernel> via_f32(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in, const TensorSpec& out) {
  if (!kernel || !kernel->info().packs.empty() || in.size() > ViaF32::kMostInputs) return nullptr;
  return std::make_unique<ViaF32>(std::move(kernel), in, out);
}

}  // namespace plumb::cpu
