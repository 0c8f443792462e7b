#include "dispatch/random_fill.h"

#include "kernels/cpu/parallel.h"

namespace plumb {

void RandomFill::cpu(const Problem<Params>& p, Candidates& candidates) {
  candidates.add("loop", [dtype = p.out[0].dtype, n = p.out[0].numel(), params = p.params] {
    return make_kernel("plumb:random", [=](const Launch& l) {
      constexpr int64_t kGrain = 4096;  // making a number takes as long as moving some tens of bytes
      cpu::parallel_for(n, kGrain, 64, [&](int64_t begin, int64_t end) {
        detail::fill_random(l.out[0], dtype, begin, end, params.distribution(), params.seed);
      });
    });
  });
}

}  // namespace plumb
