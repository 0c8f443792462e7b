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

constexpr size_t kMostInputs = 4;

}  // namespace

std::unique_ptr<Kernel> via_f32(std::unique_ptr<Kernel> kernel, std::span<const TensorSpec> in, const TensorSpec& out) {
  if (!kernel || !kernel->info().packs.empty() || in.size() > kMostInputs) return nullptr;
  struct Place {
    int64_t count;
    size_t offset;
  };
  size_t workspace = kernel->info().workspace_bytes;
  const auto place = [&](const TensorSpec& s) {
    const size_t begin = detail::aligned(workspace);
    workspace = begin + detail::aligned(static_cast<size_t>(s.numel()) * sizeof(float));
    return Place{s.numel(), begin};
  };
  std::vector<Place> places;
  for (const TensorSpec& s : in) places.push_back(place(s));
  const auto run = [places, of_out = place(out)](const Kernel& inner, const Launch& l) {
    const auto at = [&](const Place& p) {
      return reinterpret_cast<float*>(static_cast<char*>(l.workspace) + p.offset);
    };
    void* wide[kMostInputs];
    for (size_t i = 0; i < places.size(); ++i) {
      convert_all(at(places[i]), static_cast<const Bfloat16*>(l.in[i]), places[i].count);
      wide[i] = at(places[i]);
    }
    void* made = at(of_out);
    inner.run({wide, &made, l.workspace});
    convert_all(static_cast<Bfloat16*>(l.out[0]), at(of_out), of_out.count);
  };
  auto both = wrap_kernel(std::move(kernel), "plumb:via_f32:", "", run);
  both->info().workspace_bytes = workspace;
  both->info().conversions += static_cast<int>(in.size()) + 1;
  return both;
}

}  // namespace plumb::cpu
