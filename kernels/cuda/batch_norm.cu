// Batch normalisation: the channels' sums by folding their lines, in an order that does not change, and then one pass over
// the elements by four numbers a channel.
#include "kernels/batch_norm.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/fold.cuh"
#include "kernels/functors/math.h"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::Compute;

constexpr unsigned kThreads = 256;

// What the pass makes of an element of a channel: (x - centre) slope + shift, + dy scale.
template <class C>
struct Coefficients {
  C *centre, *slope, *shift, *scale;

  Coefficients() = default;
  Coefficients(void* memory, int64_t channels)
      : centre(static_cast<C*>(memory)), slope(centre + channels), shift(slope + channels), scale(shift + channels) {}
  static size_t bytes(int64_t channels) { return plumb::detail::aligned(4 * static_cast<size_t>(channels) * sizeof(C)); }
  __device__ void set(int64_t c, double of_centre, double of_slope, double of_shift, double of_scale) const {
    centre[c] = static_cast<C>(of_centre);
    slope[c] = static_cast<C>(of_slope);
    shift[c] = static_cast<C>(of_shift);
    scale[c] = static_cast<C>(of_scale);
  }
};

template <class T>
struct Forward {
  const T* x;
  const Compute<T>*gamma, *beta;
  Compute<T>*running_mean, *running_var, *mean, *inv_std;
  Coefficients<Compute<T>> k;
  double epsilon, momentum;
  bool is_unbiased;
};

// Mean and variance, term by term (Welford 1962), and of two parts (Chan, Golub, LeVeque 1983).
template <class T>
struct MomentsFold {
  using C = Compute<T>;
  struct State {
    int64_t n;
    C mean, m2;
  };
  Forward<T> f;

  __device__ State start(int64_t) const { return {0, 0, 0}; }
  __device__ void add(State& s, int64_t at, int64_t) const {
    const C v = cuda::load(f.x + at), delta = v - s.mean;
    s.mean += delta / static_cast<C>(++s.n);
    s.m2 += delta * (v - s.mean);
  }
  __device__ State merge(const State& a, const State& b) const {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    const int64_t n = a.n + b.n;
    const C delta = b.mean - a.mean, share = static_cast<C>(b.n) / static_cast<C>(n);
    return {n, a.mean + delta * share, a.m2 + b.m2 + delta * delta * (static_cast<C>(a.n) * share)};
  }
  __device__ State from_lane(const State& s, int distance) const {
    return {static_cast<int64_t>(__shfl_xor_sync(cuda::kAllLanes, static_cast<long long>(s.n), distance)),
            __shfl_xor_sync(cuda::kAllLanes, s.mean, distance), __shfl_xor_sync(cuda::kAllLanes, s.m2, distance)};
  }
  __device__ void finish(const State& s, int64_t c) const {
    const double n = static_cast<double>(s.n), mean = static_cast<double>(s.mean);
    const double var = static_cast<double>(s.m2) / n, inv_std = 1 / math::sqrt(var + f.epsilon);
    const auto update = [&](C& running, double batch) {
      running = static_cast<C>((1 - f.momentum) * static_cast<double>(running) + f.momentum * batch);
    };
    update(f.running_mean[c], mean);
    update(f.running_var[c], f.is_unbiased ? static_cast<double>(s.m2) / (n - 1) : var);
    f.mean[c] = s.mean;
    f.inv_std[c] = static_cast<C>(inv_std);
    f.k.set(c, mean, inv_std * static_cast<double>(f.gamma[c]), static_cast<double>(f.beta[c]), 0);
  }
};

template <class T>
struct EvalArgs {
  Forward<T> f;
  int64_t channels;
};
template <class T>
__global__ void __launch_bounds__(kThreads) batch_norm_eval_kernel(const EvalArgs<T> a) {
  const Forward<T>& f = a.f;
  for (int64_t c = cuda::thread_of_grid(); c < a.channels; c += cuda::threads_of_grid()) {
    const double inv_std = 1 / math::sqrt(static_cast<double>(f.running_var[c]) + f.epsilon);
    f.k.set(c, static_cast<double>(f.running_mean[c]), inv_std * static_cast<double>(f.gamma[c]),
            static_cast<double>(f.beta[c]), 0);
  }
}

template <class T>
struct Backward {
  const T *dy, *x;
  const Compute<T>*gamma, *mean, *spread;
  Compute<T>*dgamma, *dbeta;
  Coefficients<Compute<T>> k;
  double epsilon, count;  // of a channel's elements
  bool is_train;
};

// The sums of dy and of dy (x - mean).
template <class T>
struct GradientFold {
  using C = Compute<T>;
  struct State {
    C mean, sum, product;
  };
  Backward<T> b;

  __device__ State start(int64_t c) const { return {b.mean[c], 0, 0}; }
  __device__ void add(State& s, int64_t at, int64_t) const {
    const C dy = cuda::load(b.dy + at);
    s.sum += dy;
    s.product += dy * (cuda::load(b.x + at) - s.mean);
  }
  __device__ State merge(const State& p, const State& q) const { return {p.mean, p.sum + q.sum, p.product + q.product}; }
  __device__ State from_lane(const State& s, int distance) const {
    return {s.mean, __shfl_xor_sync(cuda::kAllLanes, s.sum, distance),
            __shfl_xor_sync(cuda::kAllLanes, s.product, distance)};
  }
  __device__ void finish(const State& s, int64_t c) const {
    if (b.count == 0) {
      b.dgamma[c] = b.dbeta[c] = 0;
      return;
    }
    const double spread = static_cast<double>(b.spread[c]), sum = static_cast<double>(s.sum);
    const double inv_std = b.is_train ? spread : 1 / math::sqrt(spread + b.epsilon);
    const double product = static_cast<double>(s.product) * inv_std, scale = inv_std * static_cast<double>(b.gamma[c]);
    b.dgamma[c] = static_cast<C>(product);
    b.dbeta[c] = s.sum;
    const double share = scale / b.count;
    b.k.set(c, static_cast<double>(s.mean), -share * product * inv_std, -share * sum, scale);
  }
};

template <class T>
struct MapArgs {
  const T *x, *dy;  // x: of forward, and of backward in training
  T* out;
  Coefficients<Compute<T>> k;
  int64_t n;
  cuda::Divisor inner, channels;  // elements of memory until the channel changes, and how many there are
};

template <class T>
__global__ void __launch_bounds__(kThreads) batch_norm_map_kernel(const MapArgs<T> a) {
  using C = Compute<T>;
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid()) {
    int64_t c = a.inner.quotient(i);
    a.channels.divide(c);
    C v = a.x ? (cuda::load(a.x + i) - a.k.centre[c]) * a.k.slope[c] + a.k.shift[c] : C(0);
    if (a.dy) v += cuda::load(a.dy + i) * a.k.scale[c];
    cuda::store(a.out + i, v);
  }
}

// What both directions are planned by.
struct Plan {
  int64_t channels, n;
  cuda::Lines lines;
  cuda::FoldPlan fold;
  cuda::Divisor inner;

  Plan(const TensorSpec& x, Device device)
      : channels(x.shape[1]),
        n(x.numel()),
        lines(x, TensorSpec(x.rank() == 4 ? Shape{1, x.shape[1], 1, 1} : Shape{1, x.shape[1]}), ~2u),
        fold(runtime_of(device), lines),
        inner(std::max<int64_t>(1, strides_of(x)[1])) {}

  template <class T>
  void map(const cuda::Queue& q, const T* x, const T* dy, T* out, const Coefficients<Compute<T>>& k) const {
    q.launch<batch_norm_map_kernel<T>>(
        cuda::grid_over(q.runtime(), n, kThreads),
        MapArgs<T>{x, dy, out, k, n, inner, cuda::Divisor(std::max<int64_t>(1, channels))});
  }
};

template <class T>
std::unique_ptr<Kernel> forward_kernel(const TensorSpec& x, const BatchNormParams& p, Device device) {
  using C = Compute<T>;
  using Fold = MomentsFold<T>;
  const Plan plan(x, device);
  const bool is_train = p.train != 0;
  const size_t coefficients = Coefficients<C>::bytes(plan.channels);
  Forward<T> f{};
  f.epsilon = p.epsilon, f.momentum = p.momentum, f.is_unbiased = p.unbiased_running_variance != 0;
  const int launches = plan.n == 0 ? 0 : 1 + (is_train ? plan.fold.launches() : 1);
  auto kernel = cuda::own("plumb:batch_norm", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    if (plan.n == 0) return;  // there is nothing to take statistics of
    Forward<T> now = f;
    now.x = static_cast<const T*>(l.in[0]);
    now.gamma = static_cast<const C*>(l.in[1]), now.beta = static_cast<const C*>(l.in[2]);
    now.running_mean = static_cast<C*>(l.in[3]), now.running_var = static_cast<C*>(l.in[4]);
    now.k = Coefficients<C>(l.workspace, plan.channels);
    if (is_train) {
      now.mean = static_cast<C*>(l.out[1]), now.inv_std = static_cast<C*>(l.out[2]);
      cuda::launch_fold(q, plan.fold, plan.lines, Fold{now}, static_cast<char*>(l.workspace) + coefficients);
    } else {
      q.launch<batch_norm_eval_kernel<T>>(cuda::grid_over(q.runtime(), plan.channels, kThreads),
                                          EvalArgs<T>{now, plan.channels});
    }
    plan.map<T>(q, now.x, nullptr, static_cast<T*>(l.out[0]), now.k);
  });
  kernel->info().workspace_bytes = coefficients + (is_train ? plan.fold.part_count * sizeof(typename Fold::State) : 0);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> backward_kernel(const TensorSpec& x, const BatchNormParams& p, bool needs_dx, Device device) {
  using C = Compute<T>;
  using Fold = GradientFold<T>;
  const Plan plan(x, device);
  const size_t coefficients = Coefficients<C>::bytes(plan.channels);
  Backward<T> b{};
  b.epsilon = p.epsilon, b.is_train = p.train != 0;
  b.count = static_cast<double>(plan.lines.terms.count);
  auto kernel = cuda::own("plumb:batch_norm_backward", device, plan.fold.launches() + needs_dx,
                          [=](const cuda::Queue& q, const Launch& l) {
    Backward<T> now = b;
    now.dy = static_cast<const T*>(l.in[0]), now.x = static_cast<const T*>(l.in[1]);
    now.gamma = static_cast<const C*>(l.in[2]), now.mean = static_cast<const C*>(l.in[3]);
    now.spread = static_cast<const C*>(l.in[4]);
    now.dgamma = static_cast<C*>(l.out[0]), now.dbeta = static_cast<C*>(l.out[1]);
    now.k = Coefficients<C>(l.workspace, plan.channels);
    cuda::launch_fold(q, plan.fold, plan.lines, Fold{now}, static_cast<char*>(l.workspace) + coefficients);
    // Without statistics of the batch y is linear in x, whose own numbers do not matter, NaN or not.
    if (needs_dx) plan.map<T>(q, now.is_train ? now.x : nullptr, now.dy, static_cast<T*>(l.out[2]), now.k);
  });
  kernel->info().workspace_bytes = coefficients + plan.fold.part_count * sizeof(typename Fold::State);
  return kernel;
}

}  // namespace

void BatchNormForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_computed(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[0], params = p.params, device = p.device] {
      return forward_kernel<T>(x, params, device);
    });
  });
}

void BatchNormBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_computed(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[1], params = p.params, needs_dx = p.out.size() == 3, device = p.device] {
      return backward_kernel<T>(x, params, needs_dx, device);
    });
  });
}

}  // namespace plumb
