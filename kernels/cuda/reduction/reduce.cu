#include "kernels/reduce.h"

#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/reduction/fold.cuh"

namespace plumb {
namespace {

template <class T>
struct ReduceFold {
  using State = cuda::Compute<T>;
  const T* x;
  T* y;
  Reduction what;
  State terms;  // of a line

  __device__ State start(int64_t) const {
    return what == Reduction::kMax ? -std::numeric_limits<State>::infinity() : State(0);
  }
  __device__ void add(State& s, State v, int64_t) const { s = merge(s, v); }
  __device__ State merge(State a, State b) const { return what == Reduction::kMax ? cuda::Largest()(a, b) : a + b; }
  __device__ State from_lane(State s, int distance) const { return __shfl_xor_sync(cuda::kAllLanes, s, distance); }
  __device__ void finish(State s, int64_t at) const { cuda::store(y + at, what == Reduction::kMean ? s / terms : s); }
};

}  // namespace

void Reduce::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    using Fold = ReduceFold<T>;
    candidates.add("rows", [x = p.in[0], y = p.out[0], params = p.params, device = p.device] {
      const cuda::Lines lines(x, y, params.dims);
      const auto terms = static_cast<typename Fold::State>(lines.terms.count);
      return cuda::fold_kernel("plumb:reduce", device, lines, Fold{nullptr, nullptr, params.what, terms});
    });
  });
}

}  // namespace plumb
