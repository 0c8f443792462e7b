#include "kernels/cpu/wrappers/layout_adapter.h"

#include "core/memory.h"
#include "kernels/permute.h"

namespace plumb::cpu {
namespace {

constexpr size_t kMostInputs = 4;

struct Conversion {
  std::unique_ptr<Kernel> kernel;  // null: the operand needs no conversion
  size_t offset = 0;               // workspace offset of the operand in the inner kernel's layout
};

// Makes conversions, and notes what they need.
struct Conversions {
  KernelInfo& info;
  Conversion operator()(const TensorSpec& from, const TensorSpec& to) {
    if (from.layout == to.layout) return {};
    constexpr PermuteParams kIdentity;
    Candidates candidates;
    Permute::cpu({kIdentity, {&from, 1}, {&to, 1}, 0, MathMode::kStrict}, candidates);
    const size_t offset = detail::aligned(info.workspace_bytes);
    info.workspace_bytes = offset + from.bytes();
    ++info.conversions;
    return {candidates.all().front().make(), offset};
  }
};

}  // namespace

std::unique_ptr<Kernel> layout_adapter(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in,
                                       const TensorSpec& out, std::span<const TensorSpec> given_in,
                                       const TensorSpec& given_out) {
  if (!kernel || in.size() > kMostInputs) return nullptr;
  KernelInfo info = kernel->info();
  Conversions conversion{info};
  std::vector<Conversion> before;
  for (size_t i = 0; i < in.size(); ++i) before.push_back(conversion(given_in[i], in[i]));
  Conversion after = conversion(out, given_out);
  auto run = [before = std::move(before), after = std::move(after)](const Kernel& inner, const Launch& l) {
    const auto at = [&](const Conversion& c) -> void* { return static_cast<char*>(l.workspace) + c.offset; };
    void* converted[kMostInputs];
    for (size_t i = 0; i < before.size(); ++i) {
      converted[i] = before[i].kernel ? at(before[i]) : l.in[i];
      if (before[i].kernel) before[i].kernel->run({&l.in[i], &converted[i], nullptr});
    }
    void* made = after.kernel ? at(after) : l.out[0];
    inner.run({converted, &made, l.workspace});
    if (after.kernel) after.kernel->run({&made, l.out, nullptr});
  };
  auto both = wrap_kernel(std::move(kernel), "plumb:layout_adapter:", "", std::move(run));
  both->info().workspace_bytes = info.workspace_bytes;
  both->info().conversions = info.conversions;
  return both;
}

}  // namespace plumb::cpu
