#include "kernels/dropout.h"

#include <cmath>

#include "core/random.h"
#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

void DropoutForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]), mask(p.out.back());
  if (!reference::computes_on(x.dtype())) return;
  const double probability = p.params.p;
  reference::offer(kName, candidates, [=, needs_mask = p.out.size() == 2](const Launch& l) {
    auto* state = static_cast<int64_t*>(l.in[1]);
    const auto seed = static_cast<uint64_t>(state[0]), offset = static_cast<uint64_t>(state[1]);
    uint64_t n = 0;
    reference::for_each_index(x.shape(), [&](const Index& i) {
      const uint32_t word = Philox::block(seed, offset + n / 4, kDropoutStream)[n % 4];
      const bool kept = word >= std::floor(probability * 0x1p32);
      y.store(l.out[0], i, kept ? x.load(l.in[0], i) / (1 - probability) : 0);
      if (needs_mask) mask.store_integer(l.out[1], i, kept);
      ++n;
    });
    state[1] += static_cast<int64_t>((n + 3) / 4);
  });
}

void DropoutBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), mask(p.in[1]), dx(p.out[0]);
  if (!reference::computes_on(dy.dtype())) return;
  reference::offer(kName, candidates, [=, probability = static_cast<double>(p.params.p)](const Launch& l) {
    reference::parallel_for_each_index(dy.shape(), [&](const Index& i) {
      dx.store(l.out[0], i, mask.load_integer(l.in[1], i) ? dy.load(l.in[0], i) / (1 - probability) : 0);
    });
  });
}

}  // namespace plumb
