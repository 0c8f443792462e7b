#include "kernels/copy.h"

#include "kernels/cpu/nontemporal.h"

namespace plumb {
namespace {

// Copies the last input to the output, or to the first input if there is no output.
std::unique_ptr<Kernel> copy_kernel(int64_t bytes, bool is_into) {
  return make_kernel("plumb:copy", [=](const Launch& l) {
    auto* to = static_cast<uint8_t*>(is_into ? l.in[0] : l.out[0]);
    const auto* from = static_cast<const uint8_t*>(l.in[is_into ? 1 : 0]);
    cpu::parallel_for(bytes, cpu::kGrainBytes, 64, [&](int64_t begin, int64_t end) {
      if (bytes < cpu::nontemporal_bytes) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      } else {
        cpu::copy_nontemporal(to + begin, from + begin, end - begin);
        cpu::nontemporal_fence();
      }
    });
  });
}

void offer(const TensorSpec& s, bool is_into, Candidates& candidates) {
  candidates.add("loop", [bytes = static_cast<int64_t>(s.bytes()), is_into] { return copy_kernel(bytes, is_into); });
}

}  // namespace

void Copy::cpu(const Problem<NoParams>& p, Candidates& candidates) { offer(p.out[0], false, candidates); }
void CopyInto::cpu(const Problem<NoParams>& p, Candidates& candidates) { offer(p.in[0], true, candidates); }

}  // namespace plumb
