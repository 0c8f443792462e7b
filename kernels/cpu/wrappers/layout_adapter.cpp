#include "kernels/cpu/wrappers/layout_adapter.h"

#include <array>

#include "core/memory.h"
#include "kernels/permute.h"

namespace plumb::cpu {
namespace {

class LayoutAdapter final : public WrapperKernel {
 public:
  explicit LayoutAdapter(std::unique_ptr<Kernel> kernel) : WrapperKernel(std::move(kernel), "plumb:layout_adapter:") {}
  void convert_input(size_t i, const TensorSpec& given, const TensorSpec& wanted) {
    inputs_ = std::max(inputs_, i + 1);
    if (given.layout != wanted.layout) in_[i] = convert(given, wanted, wanted.bytes());
  }
  void convert_output(const TensorSpec& made, const TensorSpec& given) {
    if (made.layout != given.layout) out_ = convert(made, given, made.bytes());
  }

  void run(const Launch& l) const override {
    const auto at = [&](const Conversion& c) -> void* { return static_cast<char*>(l.workspace) + c.offset; };
    std::array<void*, kMostInputs> in;
    for (size_t i = 0; i < inputs_; ++i) {
      in[i] = l.in[i];
      if (!in_[i].kernel) continue;
      in[i] = at(in_[i]);
      in_[i].kernel->run({&l.in[i], &in[i], nullptr});
    }
    void* out = out_.kernel ? at(out_) : l.out[0];
    inner().run({in.data(), &out, l.workspace});
    if (out_.kernel) out_.kernel->run({&out, l.out, nullptr});
  }
  static constexpr size_t kMostInputs = 4;

 private:
  struct Conversion {
    std::unique_ptr<Kernel> kernel;  // null: the operand needs no conversion
    size_t offset = 0;               // workspace offset of the operand in the inner kernel's layout
  };
  Conversion convert(const TensorSpec& from, const TensorSpec& to, size_t bytes) {
    constexpr PermuteParams kIdentity;
    Candidates candidates;
    Permute::cpu({kIdentity, {&from, 1}, {&to, 1}, 0, MathMode::kStrict}, candidates);
    const size_t offset = detail::aligned(info().workspace_bytes);
    info().workspace_bytes = offset + bytes;
    ++info().conversions;
    return {candidates.all().front().make(), offset};
  }

  std::array<Conversion, kMostInputs> in_;
  size_t inputs_ = 0;
  Conversion out_;
};

}  // namespace

std::unique_ptr<Kernel> layout_adapter(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in,
                                       const TensorSpec& out, std::span<const TensorSpec> given_in,
                                       const TensorSpec& given_out) {
  if (!kernel || in.size() > LayoutAdapter::kMostInputs) return nullptr;
  auto both = std::make_unique<LayoutAdapter>(std::move(kernel));
  for (size_t i = 0; i < in.size(); ++i) both->convert_input(i, given_in[i], in[i]);
  both->convert_output(out, given_out);
  return both;
}

}  // namespace plumb::cpu
