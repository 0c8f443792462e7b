// Batch normalisation: the channels' sums, and then one pass over the elements; or both by who has whole channels.
#include "kernels/batch_norm.h"

#include "kernels/cuda/normalization/batch_norm.cuh"
#include "kernels/cuda/normalization/batch_norm_whole.cuh"
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
using cuda::norm::Running;
using cuda::norm::WholePlan;

constexpr unsigned kThreads = 256;

template <class T>
size_t coefficient_bytes(int64_t channels) {
  return plumb::detail::aligned(static_cast<size_t>(channels) * sizeof(Coefficients<Compute<T>>));
}

template <class T>
struct EvalArgs {
  Running<Compute<T>> running;
  Coefficients<Compute<T>>* k;
  int64_t channels;
};
template <class T>
__global__ void __launch_bounds__(kThreads) batch_norm_eval_kernel(const EvalArgs<T> a) {
#pragma unroll 1
  for (int64_t c = cuda::thread_of_grid(); c < a.channels; c += cuda::threads_of_grid()) {
    const auto of_channel = [c](const auto* values) { return cuda::get(values + c); };
    const auto& r = a.running;
    cuda::put(a.k + c, cuda::norm::in_use(of_channel(r.mean), of_channel(r.var), of_channel(r.gamma),
                                          of_channel(r.beta), r.epsilon));
  }
}

template <class T>
Forward<T> forward_of(const cuda::ChannelView& view, const BatchNormParams& p, const Launch& l) {
  using C = Compute<T>;
  Forward<T> f{};
  f.x = static_cast<const T*>(l.in[0]);
  f.gamma = static_cast<const C*>(l.in[1]), f.beta = static_cast<const C*>(l.in[2]);
  f.running_mean = static_cast<C*>(l.in[3]), f.running_var = static_cast<C*>(l.in[4]);
  if (p.train) f.mean = static_cast<C*>(l.out[1]), f.inv_std = static_cast<C*>(l.out[2]);
  f.k = static_cast<Coefficients<C>*>(l.workspace);
  f.epsilon = p.epsilon, f.momentum = p.momentum, f.is_unbiased = p.unbiased_running_variance != 0;
  f.count = static_cast<double>(view.outer * view.inner), f.inner = view.inner;
  return f;
}
template <class T>
Backward<T> backward_of(const cuda::ChannelView& view, const BatchNormParams& p, const Launch& l) {
  using C = Compute<T>;
  Backward<T> b{};
  b.dy = static_cast<const T*>(l.in[0]), b.x = static_cast<const T*>(l.in[1]);
  b.gamma = static_cast<const C*>(l.in[2]), b.mean = static_cast<const C*>(l.in[3]);
  b.spread = static_cast<const C*>(l.in[4]);
  b.dgamma = static_cast<C*>(l.out[0]), b.dbeta = static_cast<C*>(l.out[1]);
  b.k = static_cast<Coefficients<C>*>(l.workspace);
  b.epsilon = p.epsilon, b.is_train = p.train != 0;
  b.count = static_cast<double>(view.outer * view.inner);
  return b;
}

template <class T>
std::unique_ptr<Kernel> forward_kernel(const TensorSpec& x, const BatchNormParams& p, Device device) {
  const cuda::ChannelView view(x);
  const cuda::ChannelSumsPlan<MomentsOf<T>> plan(runtime_of(device), view);
  const MapPlan map = MapPlan::of<T>(runtime_of(device), view);
  const bool is_train = p.train != 0, is_empty = x.numel() == 0;
  const size_t of_coefficients = coefficient_bytes<T>(view.channels);
  const bool is_at_once = !is_train && !map.needs_coefficients();
  const int launches = is_empty ? 0 : is_at_once ? 1 : 1 + (is_train ? plan.launches() : 1);
  auto kernel = cuda::own("plumb:batch_norm", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    if (is_empty) return;  // there is nothing to take statistics of
    const Forward<T> f = forward_of<T>(view, p, l);
    auto* const y = static_cast<T*>(l.out[0]);
    if (is_train) {
      plan.launch(q, MomentsOf<T>{f}, static_cast<char*>(l.workspace) + of_coefficients);
      return map.launch<Map::kForward, T>(q, f.x, nullptr, y, f.k);
    }
    const Running<Compute<T>> running{f.running_mean, f.running_var, f.gamma, f.beta,
                                      static_cast<Compute<T>>(f.epsilon)};
    if (!is_at_once) {
      q.launch<batch_norm_eval_kernel<T>>(cuda::grid_over(q.runtime(), view.channels, kThreads),
                                          EvalArgs<T>{running, f.k, view.channels});
    }
    map.launch<Map::kInference, T>(q, f.x, nullptr, y, f.k, running);
  });
  kernel->info().workspace_bytes = is_at_once ? 0 : of_coefficients + (is_train ? plan.workspace_bytes() : 0);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> backward_kernel(const TensorSpec& x, const BatchNormParams& p, bool needs_dx, Device device) {
  const cuda::ChannelView view(x);
  const cuda::ChannelSumsPlan<Gradients<T>> plan(runtime_of(device), view);
  const MapPlan map = MapPlan::of<T>(runtime_of(device), view);
  const size_t of_coefficients = coefficient_bytes<T>(view.channels);
  const int launches = plan.launches() + (needs_dx && x.numel() > 0);
  auto kernel = cuda::own("plumb:batch_norm_backward", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    const Backward<T> b = backward_of<T>(view, p, l);
    plan.launch(q, Gradients<T>{b}, static_cast<char*>(l.workspace) + of_coefficients);
    if (!needs_dx) return;
    auto* const dx = static_cast<T*>(l.out[2]);
    b.is_train ? map.launch<Map::kBackward, T>(q, b.x, b.dy, dx, b.k)
               : map.launch<Map::kLinear, T>(q, b.x, b.dy, dx, b.k);
  });
  kernel->info().workspace_bytes = of_coefficients + plan.workspace_bytes();
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> whole_forward(const TensorSpec& x, const BatchNormParams& p, Device device) {
  const cuda::ChannelView view(x);
  const WholePlan plan = WholePlan::of<T>(runtime_of(device), view);
  auto kernel = cuda::own("plumb:batch_norm", device, 1, [=](const cuda::Queue& q, const Launch& l) {
    const Forward<T> f = forward_of<T>(view, p, l);
    plan.launch<Map::kForward, T>(q, MomentsOf<T>{f}, f.x, nullptr, static_cast<T*>(l.out[0]), f.k);
  });
  kernel->info().workspace_bytes = coefficient_bytes<T>(view.channels);
  return kernel;
}
template <class T>
std::unique_ptr<Kernel> whole_backward(const TensorSpec& x, const BatchNormParams& p, Device device) {
  const cuda::ChannelView view(x);
  const WholePlan plan = WholePlan::of<T>(runtime_of(device), view);
  auto kernel = cuda::own("plumb:batch_norm_backward", device, 1, [=](const cuda::Queue& q, const Launch& l) {
    const Backward<T> b = backward_of<T>(view, p, l);
    plan.launch<Map::kBackward, T>(q, Gradients<T>{b}, b.x, b.dy, static_cast<T*>(l.out[2]), b.k);
  });
  kernel->info().workspace_bytes = coefficient_bytes<T>(view.channels);
  return kernel;
}
/// Of training; f64 is for checking, and would take too many registers.
template <class T>
bool has_whole(const TensorSpec& x, const BatchNormParams& p, Device device) {
  return p.train && WholePlan::of<T>(runtime_of(device), cuda::ChannelView(x)).has_enough();
}

}  // namespace

void BatchNormForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  if (p.params.activation != Activation::kNone || p.in.size() == 6) return;  // the op has passes of their own for them
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(
        "loop", [x = p.in[0], params = p.params, device = p.device] { return forward_kernel<T>(x, params, device); });
    if constexpr (!std::is_same_v<T, double>) {
      if (has_whole<T>(p.in[0], p.params, p.device)) {
        candidates.add("whole_channels", [x = p.in[0], params = p.params, device = p.device] {
          return whole_forward<T>(x, params, device);
        });
      }
    }
  });
  cuda::offer_cudnn_batch_norm(p, candidates);
}

void BatchNormBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[1], params = p.params, needs_dx = p.out.size() == 3, device = p.device] {
      return backward_kernel<T>(x, params, needs_dx, device);
    });
    if constexpr (!std::is_same_v<T, double>) {
      if (p.out.size() == 3 && has_whole<T>(p.in[1], p.params, p.device)) {
        candidates.add("whole_channels", [x = p.in[1], params = p.params, device = p.device] {
          return whole_backward<T>(x, params, device);
        });
      }
    }
  });
  cuda::offer_cudnn_batch_norm_backward(p, candidates);
}

}  // namespace plumb
