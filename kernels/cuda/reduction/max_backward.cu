// The gradient of a maximum: how many elements of a line equal it, and then an equal share for each of them.
#include "kernels/cpu/strided.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/reduction/fold_plan.cuh"
#include "kernels/reduce.h"

namespace plumb {
namespace {

template <class C>
__device__ bool is_same(C v, C largest) {
  return v == largest || (v != v && largest != largest);
}

template <class T>
struct CountFold {
  using Element = T;
  using State = int64_t;
  static constexpr bool kIsAcross = true;
  static constexpr unsigned kBlocks = cuda::kFewBlocks;
  struct Own {
    unsigned count;
    cuda::Compute<T> largest;
  };
  const T *x, *y;
  int64_t* counts;  // of y's shape

  __device__ Own begin(int64_t at) const { return {0, cuda::load(y + at)}; }
  template <int kEach>
  __device__ void add(Own& own, const cuda::Piece<T, kEach>& v, unsigned, const auto&) const {
    for (int j = 0; j < kEach; ++j) own.count += is_same(cuda::wide(v.of[j]), own.largest);
  }
  __device__ State end(const Own& own, const auto&, bool) const { return own.count; }
  __device__ State merge(State a, State b) const { return a + b; }
  __device__ State from_lane(State s, int distance) const {
    return static_cast<int64_t>(__shfl_xor_sync(cuda::kAllLanes, static_cast<long long>(s), distance));
  }
  __device__ void finish(State s, int64_t at) const { cuda::put(counts + at, s); }
};

template <class T>
struct ShareArgs {
  const T *dy, *x, *y;
  const int64_t* counts;
  T* dx;
  cuda::Steps steps;  // of x, with the offsets in y
};

template <class T>
__global__ void __launch_bounds__(256) max_share_kernel(const ShareArgs<T> a) {
  using C = cuda::Compute<T>;
  struct Element {
    C x;
    int64_t at;  // in y
  };
  const auto fetch = [&](int64_t i) { return Element{cuda::load(a.x + i), a.steps.of_x(i)}; };
  cuda::for_scattered<T>(a.steps.count, fetch, [&](int64_t i, const Element& e) {
    const bool has_share = is_same(e.x, cuda::load(a.y + e.at));
    cuda::store(a.dx + i, has_share ? cuda::load(a.dy + e.at) / static_cast<C>(cuda::get(a.counts + e.at)) : C(0));
  });
}

}  // namespace

void MaxBackward::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    using Fold = CountFold<T>;
    candidates.add("rows", [x = p.in[1], y = p.in[2], device = p.device] {
      uint32_t dims = 0;
      for (int d = 0; d < x.rank(); ++d) dims |= (y.shape[d] == 1 ? 1u : 0u) << d;
      const cuda::Lines lines(x, y, dims);
      const cuda::FoldPlan<Fold> plan(runtime_of(device), lines);
      const cuda::Steps steps(x, cpu::broadcast_strides(y, x.shape));
      const size_t counts_bytes = plumb::detail::aligned(static_cast<size_t>(y.numel()) * sizeof(int64_t));
      auto kernel =
          cuda::own("plumb:max_backward", device, plan.launches() + 1, [=](const cuda::Queue& q, const Launch& l) {
            auto* const counts = static_cast<int64_t*>(l.workspace);
            const auto *dy = static_cast<const T*>(l.in[0]), *from = static_cast<const T*>(l.in[1]),
                       *largest = static_cast<const T*>(l.in[2]);
            plan.launch(q, Fold{from, largest, counts}, static_cast<char*>(l.workspace) + counts_bytes);
            q.launch<max_share_kernel<T>>(cuda::grid_over(q.runtime(), steps.count),
                                          ShareArgs<T>{dy, from, largest, counts, static_cast<T*>(l.out[0]), steps});
          });
      kernel->info().workspace_bytes = counts_bytes + plan.workspace_bytes();
      return kernel;
    });
  });
}

}  // namespace plumb
