#include "kernels/reduce.h"

#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/reduction/fold_plan.cuh"

namespace plumb {
namespace {

template <class T, class Combine>
struct ReduceFold {
  using Element = T;
  using State = cuda::Compute<T>;
  using Own = State;
  static constexpr bool kIsAcross = true;
  static constexpr unsigned kBlocks = cuda::kLeastBlocks;
  const T* x;
  T* y;
  Combine combine;
  State divide_by, none;  // what no terms come to

  __device__ State begin(int64_t) const { return none; }
  template <int kEach>
  __device__ void add(State& s, const cuda::Piece<T, kEach>& v, unsigned, const auto&) const {
    State of[kEach];
    for (int j = 0; j < kEach; ++j) of[j] = cuda::wide(v.of[j]);
    s = combine(s, cuda::by_halves(of, combine));
  }
  __device__ State end(State s, const auto&, bool) const { return s; }
  __device__ State merge(State a, State b) const { return combine(a, b); }
  __device__ State from_lane(State s, int distance) const { return __shfl_xor_sync(cuda::kAllLanes, s, distance); }
  __device__ void finish(State s, int64_t at) const { cuda::store(y + at, s / divide_by); }
};

}  // namespace

void Reduce::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    using C = cuda::Compute<T>;
    candidates.add("rows", [x = p.in[0], y = p.out[0], params = p.params, device = p.device] {
      const cuda::Lines lines(x, y, params.dims);
      const auto kernel = [&]<class Combine>(Combine combine, C divide_by, C none) {
        const ReduceFold<T, Combine> fold{nullptr, nullptr, combine, divide_by, none};
        return cuda::fold_kernel("plumb:reduce", device, lines, fold);
      };
      if (params.what == Reduction::kMax) return kernel(cuda::Largest(), C(1), -std::numeric_limits<C>::infinity());
      return kernel(cuda::Sum(), params.what == Reduction::kMean ? static_cast<C>(lines.terms.count) : C(1), C(0));
    });
  });
}

}  // namespace plumb
