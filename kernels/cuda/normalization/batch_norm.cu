// Batch normalisation: the channels' sums, and then one pass over the elements.
#include "kernels/batch_norm.h"

#include "kernels/cuda/normalization/batch_norm.cuh"
#include "kernels/cuda/normalization/batch_norm_map.cuh"
#include "kernels/cuda/vendor/offers.h"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::Compute;
using cuda::norm::Backward;
using cuda::norm::Coefficients;
using cuda::norm::Forward;
using cuda::norm::Gradients;
using cuda::norm::Map;
using cuda::norm::MapPlan;
using cuda::norm::MomentsOf;

constexpr unsigned kThreads = 256;

template <class T>
size_t coefficient_bytes(int64_t channels) {
  return plumb::detail::aligned(static_cast<size_t>(channels) * sizeof(Coefficients<Compute<T>>));
}

template <class T>
struct EvalArgs {
  Forward<T> f;
  int64_t channels;
};
template <class T>
__global__ void __launch_bounds__(kThreads) batch_norm_eval_kernel(const EvalArgs<T> a) {
  const Forward<T>& f = a.f;
#pragma unroll 1
  for (int64_t c = cuda::thread_of_grid(); c < a.channels; c += cuda::threads_of_grid()) {
    const auto of_channel = [c](const auto* values) { return static_cast<double>(cuda::get(values + c)); };
    const double inv_std = 1 / math::sqrt(of_channel(f.running_var) + f.epsilon);
    cuda::put(f.k + c, cuda::norm::coefficients<Compute<T>>(of_channel(f.running_mean), inv_std * of_channel(f.gamma),
                                                            of_channel(f.beta), 0));
  }
}

template <class T>
std::unique_ptr<Kernel> forward_kernel(const TensorSpec& x, const BatchNormParams& p, Device device) {
  using C = Compute<T>;
  const cuda::ChannelView view(x);
  const cuda::ChannelSumsPlan<MomentsOf<T>> plan(runtime_of(device), view);
  const MapPlan map = MapPlan::of<T>(runtime_of(device), view);
  const bool is_train = p.train != 0, is_empty = x.numel() == 0;
  const size_t of_coefficients = coefficient_bytes<T>(view.channels);
  Forward<T> f{};
  f.epsilon = p.epsilon, f.momentum = p.momentum, f.is_unbiased = p.unbiased_running_variance != 0;
  f.count = static_cast<double>(view.outer * view.inner), f.inner = view.inner;
  const int launches = is_empty ? 0 : 1 + (is_train ? plan.launches() : 1);
  auto kernel = cuda::own("plumb:batch_norm", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    if (is_empty) return;  // there is nothing to take statistics of
    Forward<T> now = f;
    now.x = static_cast<const T*>(l.in[0]);
    now.gamma = static_cast<const C*>(l.in[1]), now.beta = static_cast<const C*>(l.in[2]);
    now.running_mean = static_cast<C*>(l.in[3]), now.running_var = static_cast<C*>(l.in[4]);
    now.k = static_cast<Coefficients<C>*>(l.workspace);
    if (is_train) {
      now.mean = static_cast<C*>(l.out[1]), now.inv_std = static_cast<C*>(l.out[2]);
      plan.launch(q, MomentsOf<T>{now}, static_cast<char*>(l.workspace) + of_coefficients);
    } else {
      q.launch<batch_norm_eval_kernel<T>>(cuda::grid_over(q.runtime(), view.channels, kThreads),
                                          EvalArgs<T>{now, view.channels});
    }
    map.launch<Map::kForward, T>(q, now.x, nullptr, static_cast<T*>(l.out[0]), now.k);
  });
  kernel->info().workspace_bytes = of_coefficients + (is_train ? plan.workspace_bytes() : 0);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> backward_kernel(const TensorSpec& x, const BatchNormParams& p, bool needs_dx, Device device) {
  using C = Compute<T>;
  const cuda::ChannelView view(x);
  const cuda::ChannelSumsPlan<Gradients<T>> plan(runtime_of(device), view);
  const MapPlan map = MapPlan::of<T>(runtime_of(device), view);
  const size_t of_coefficients = coefficient_bytes<T>(view.channels);
  Backward<T> b{};
  b.epsilon = p.epsilon, b.is_train = p.train != 0;
  b.count = static_cast<double>(view.outer * view.inner);
  const int launches = plan.launches() + (needs_dx && x.numel() > 0);
  auto kernel = cuda::own("plumb:batch_norm_backward", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    Backward<T> now = b;
    now.dy = static_cast<const T*>(l.in[0]), now.x = static_cast<const T*>(l.in[1]);
    now.gamma = static_cast<const C*>(l.in[2]), now.mean = static_cast<const C*>(l.in[3]);
    now.spread = static_cast<const C*>(l.in[4]);
    now.dgamma = static_cast<C*>(l.out[0]), now.dbeta = static_cast<C*>(l.out[1]);
    now.k = static_cast<Coefficients<C>*>(l.workspace);
    plan.launch(q, Gradients<T>{now}, static_cast<char*>(l.workspace) + of_coefficients);
    if (!needs_dx) return;
    auto* const dx = static_cast<T*>(l.out[2]);
    now.is_train ? map.launch<Map::kBackward, T>(q, now.x, now.dy, dx, now.k)
                 : map.launch<Map::kLinear, T>(q, now.x, now.dy, dx, now.k);
  });
  kernel->info().workspace_bytes = of_coefficients + plan.workspace_bytes();
  return kernel;
}

}  // namespace

void BatchNormForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(
        "loop", [x = p.in[0], params = p.params, device = p.device] { return forward_kernel<T>(x, params, device); });
  });
  cuda::offer_cudnn_batch_norm(p, candidates);
}

void BatchNormBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[1], params = p.params, needs_dx = p.out.size() == 3, device = p.device] {
      return backward_kernel<T>(x, params, needs_dx, device);
    });
  });
  cuda::offer_cudnn_batch_norm_backward(p, candidates);
}

}  // namespace plumb
