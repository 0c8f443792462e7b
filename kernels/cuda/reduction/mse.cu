#include "kernels/mse.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/reduction/fold_plan.cuh"

namespace plumb {
namespace {

// Of one line, all elements: the number of a term is where it lies, in both operands.
template <class T>
struct SquaresFold {
  using Element = T;
  using State = cuda::Compute<T>;
  using Own = State;
  static constexpr bool kIsAcross = false;
  static constexpr unsigned kBlocks = sizeof(T) < 8 ? cuda::kLeastBlocks : cuda::kFewBlocks;
  const T *x, *other;
  State* loss;
  State n;

  __device__ State begin(int64_t) const { return 0; }
  template <int kEach, class Terms>
  __device__ void add(State& s, const cuda::Piece<T, kEach>& v, unsigned k, const Terms& terms) const {
    const auto from = cuda::load_piece<kEach>(other + terms.number(k));
    State of[kEach];
    for (int j = 0; j < kEach; ++j) {
      const State difference = cuda::wide(v.of[j]) - cuda::wide(from.of[j]);
      of[j] = difference * difference;
    }
    s += cuda::by_halves(of, cuda::Sum());
  }
  __device__ State end(State s, const auto&, bool) const { return s; }
  __device__ State merge(State a, State b) const { return a + b; }
  __device__ State from_lane(State s, int distance) const { return __shfl_xor_sync(cuda::kAllLanes, s, distance); }
  __device__ void finish(State s, int64_t) const { cuda::put(loss, s / n); }
};

template <class T>
struct BackwardArgs {
  const cuda::Compute<T>* dy;
  const T *x, *y;
  T* dx;
  int64_t n;
  cuda::Compute<T> scale;
};
template <class T>
__global__ void __launch_bounds__(256) mse_backward_kernel(const BackwardArgs<T> a) {
  const auto scale = cuda::get(a.dy) * a.scale;
  cuda::for_dense<cuda::Vector<T>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    const auto x = cuda::load_piece<kEach>(a.x + i), y = cuda::load_piece<kEach>(a.y + i);
    cuda::Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) dx.of[j] = cuda::rounded<T>((cuda::wide(x.of[j]) - cuda::wide(y.of[j])) * scale);
    cuda::store_piece(a.dx + i, dx);
  });
}

}  // namespace

void MseForward::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    using C = cuda::Compute<T>;
    candidates.add("rows", [x = p.in[0], device = p.device] {
      const cuda::FoldPlan<SquaresFold<T>> plan(runtime_of(device),
                                                cuda::Lines(x, TensorSpec(Shape(), x.dtype), (1u << x.rank()) - 1));
      const auto n = static_cast<C>(x.numel());
      auto kernel = cuda::own("plumb:mse", device, plan.launches(), [=](const cuda::Queue& q, const Launch& l) {
        const SquaresFold<T> fold{static_cast<const T*>(l.in[0]), static_cast<const T*>(l.in[1]),
                                  static_cast<C*>(l.out[0]), n};
        plan.launch(q, fold, l.workspace);
      });
      kernel->info().workspace_bytes = plan.workspace_bytes();
      return kernel;
    });
  });
}

void MseBackward::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    using C = cuda::Compute<T>;
    const int64_t n = p.in[1].numel();
    const auto run = [n, scale = static_cast<C>(2.0 / static_cast<double>(n))](const cuda::Queue& q, const Launch& l) {
      q.launch<mse_backward_kernel<T>>(
          cuda::grid_over(q.runtime(), n / cuda::Vector<T>::kSize + 1),
          BackwardArgs<T>{static_cast<const C*>(l.in[0]), static_cast<const T*>(l.in[1]),
                          static_cast<const T*>(l.in[2]), static_cast<T*>(l.out[0]), n, scale});
    };
    cuda::offer(candidates, "loop", "plumb:mse_backward", p.device, 1, run);
  });
}

}  // namespace plumb
