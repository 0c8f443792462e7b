#include "kernels/cpu/wrappers/via_f32.h"

#include "core/memory.h"
#include "dispatch/pack.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

constexpr size_t kMostInputs = 4;

template <class To, class From>
void convert_all(To* to, const From* from, int64_t n) {
  parallel_for(n, kGrainBytes / 4, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
  });
}

void widen(float* to, const void* from, int64_t n) { convert_all(to, static_cast<const Bfloat16*>(from), n); }

// A pack of a bf16 tensor: the one that a kernel in f32 has for the widened tensor.
struct PackOfWidened {
  Layout own;
  bool operator==(const PackOfWidened&) const = default;
};

Layout pack_of_widened(Layout own) {
  const PackFormat& format = detail::format_of(own);
  const auto make = [own](const TensorSpec& plain) {
    return via_f32(detail::make_packer(plain.with(DType::kF32), own), {&plain, 1}, plain.with(own));
  };
  return register_pack(PackOfWidened{own}, {format.name + "_of_bf16", format.bytes, make, format.provider});
}

// The widened tensor itself.
struct Widened {
  int64_t count;
  bool operator==(const Widened&) const = default;
};

Layout widened_pack(int64_t count) {
  const auto make = [count](const TensorSpec&) {
    return make_kernel("plumb:widen",
                       [count](const Launch& l) { widen(static_cast<float*>(l.out[0]), l.in[0], count); });
  };
  return register_pack(Widened{count}, {"widened", static_cast<size_t>(count) * sizeof(float), make});
}

// An operand in f32 in the workspace; none if it is taken as it is.
struct Copy {
  int64_t count = 0;
  size_t offset = 0;
  explicit operator bool() const { return count > 0; }
};

}  // namespace

std::unique_ptr<Kernel> via_f32(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in, const TensorSpec& out,
                                int weights) {
  if (!kernel || in.size() > kMostInputs) return nullptr;
  KernelInfo info = kernel->info();
  const auto copy_of = [&](const TensorSpec& s) -> Copy {
    if (s.dtype != DType::kBf16 || is_pack(s.layout)) return {};
    const size_t begin = detail::aligned(info.workspace_bytes);
    info.workspace_bytes = begin + detail::aligned(static_cast<size_t>(s.numel()) * sizeof(float));
    ++info.conversions;
    return {s.numel(), begin};
  };
  std::vector<TensorSpec> taken(in.begin(), in.end());
  for (PackRequest& r : info.packs) {
    r.layout = pack_of_widened(r.layout);
    taken[static_cast<size_t>(r.input)].layout = r.layout;
  }
  if (weights >= 0 && !is_pack(taken[static_cast<size_t>(weights)].layout)) {
    TensorSpec& w = taken[static_cast<size_t>(weights)];
    w.layout = widened_pack(w.numel());
    info.packs.push_back({weights, w.layout});
  }
  std::vector<Copy> copies;
  for (const TensorSpec& s : taken) copies.push_back(copy_of(s));
  const auto run = [copies, of_out = copy_of(out)](const Kernel& inner, const Launch& l) {
    const auto at = [&](const Copy& c) { return reinterpret_cast<float*>(static_cast<char*>(l.workspace) + c.offset); };
    void* wide[kMostInputs];
    for (size_t i = 0; i < copies.size(); ++i) {
      wide[i] = copies[i] ? at(copies[i]) : l.in[i];
      if (copies[i]) widen(at(copies[i]), l.in[i], copies[i].count);
    }
    void* made = of_out ? at(of_out) : l.out[0];
    inner.run({wide, &made, l.workspace});
    if (of_out) convert_all(static_cast<Bfloat16*>(l.out[0]), at(of_out), of_out.count);
  };
  auto both = wrap_kernel(std::move(kernel), "plumb:via_f32:", "", run);
  info.name = both->info().name;
  both->info() = std::move(info);
  return both;
}

}  // namespace plumb::cpu
