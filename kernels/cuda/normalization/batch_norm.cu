// Batch normalisation: the channels' sums, and then one pass over the elements, with what is added and a ReLU; or both
// by who has whole channels.
#include "kernels/accumulate.h"
#include "kernels/batch_norm.h"

#include "kernels/cuda/normalization/batch_norm.cuh"
#include "kernels/cuda/normalization/batch_norm_whole.cuh"
#include "kernels/cuda/vendor/offers.h"
#include "kernels/elementwise.h"

namespace plumb {
namespace {

using cuda::Compute;
using cuda::norm::coefficient_bytes;
using cuda::norm::Coefficients;
using cuda::norm::Forward;
using cuda::norm::Map;
using cuda::norm::MapArgs;
using cuda::norm::MapPlan;
using cuda::norm::MomentsOf;
using cuda::norm::Running;
using cuda::norm::WholePlan;

constexpr unsigned kThreads = 256;

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
bool is_relu(const BatchNormParams& p) { return p.activation == Activation::kRelu; }

template <class T>
MapArgs<T> map_of(const Forward<T>& f, const BatchNormParams& p, bool adds, const Launch& l) {
  MapArgs<T> a{.x = f.x, .other = adds ? static_cast<const T*>(l.in[5]) : nullptr};
  a.out = static_cast<T*>(l.out[0]), a.k = f.k;
  if (is_relu(p)) a.floor = 0;
  return a;
}
template <class T>
std::unique_ptr<Kernel> forward_kernel(const TensorSpec& x, const BatchNormParams& p, bool adds, Device device) {
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
    MapArgs<T> a = map_of(f, p, adds, l);
    if (is_train) {
      plan.launch(q, MomentsOf<T>{f}, static_cast<char*>(l.workspace) + of_coefficients);
      return adds ? map.launch<Map::kForwardAdd>(q, a) : map.launch<Map::kForward>(q, a);
    }
    a.running = {f.running_mean, f.running_var, f.gamma, f.beta, static_cast<Compute<T>>(f.epsilon)};
    if (!is_at_once) {
      q.launch<batch_norm_eval_kernel<T>>(cuda::grid_over(q.runtime(), view.channels, kThreads),
                                          EvalArgs<T>{a.running, f.k, view.channels});
    }
    adds ? map.launch<Map::kInferenceAdd>(q, a) : map.launch<Map::kInference>(q, a);
  });
  kernel->info().workspace_bytes = is_at_once ? 0 : of_coefficients + (is_train ? plan.workspace_bytes() : 0);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> whole_forward(const TensorSpec& x, const BatchNormParams& p, bool adds, Device device) {
  const cuda::ChannelView view(x);
  const WholePlan plan = WholePlan::of<T>(runtime_of(device), view);
  auto kernel = cuda::own("plumb:batch_norm", device, 1, [=](const cuda::Queue& q, const Launch& l) {
    const Forward<T> f = forward_of<T>(view, p, l);
    const MapArgs<T> a = map_of(f, p, adds, l);
    adds ? plan.launch<Map::kForwardAdd>(q, MomentsOf<T>{f}, a) : plan.launch<Map::kForward>(q, MomentsOf<T>{f}, a);
  });
  kernel->info().workspace_bytes = coefficient_bytes<T>(view.channels);
  return kernel;
}

// `kernel`, and behind it in place what its library had no plan for: the sum and the ReLU, as ops have them.
std::unique_ptr<Kernel> with_passes_behind(std::unique_ptr<Kernel> kernel, const TensorSpec& y, bool adds, bool is_relu,
                                           Device device) {
  const auto then = [&](const char* name, auto offer, auto run) {
    Candidates offered;
    offer(offered);
    auto after = offered.all().front().make();
    const int launches = kernel->info().launches + after->info().launches;
    kernel =
        wrap_kernel(std::move(kernel), "", name, [run, after = std::move(after)](const Kernel& inner, const Launch& l) {
          inner.run(l);
          run(*after, l);
        });
    kernel->info().launches = launches;
  };
  const TensorSpec both[2] = {y, y};
  if (adds) {
    then(
        "+add",
        [&](Candidates& c) {
          Accumulate::cuda({{}, both, {}, 1, {}, device}, c);
        },
        [](const Kernel& add, const Launch& l) {
          void* const in[2] = {l.out[0], l.in[5]};
          add.run({in, nullptr, nullptr, l.stream});
        });
  }
  if (is_relu) {
    then(
        "+relu",
        [&](Candidates& c) {
          detail::Unary<functors::Relu, detail::Stage::kForward>::cuda({{}, {&y, 1}, {&y, 1}, 1, {}, device}, c);
        },
        [](const Kernel& relu, const Launch& l) {
          relu.run({l.out, l.out, nullptr, l.stream});
        });
  }
  return kernel;
}

}  // namespace

void BatchNormForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  const bool adds = p.in.size() == 6;
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[0], params = p.params, adds, device = p.device] {
      return forward_kernel<T>(x, params, adds, device);
    });
    if constexpr (!std::is_same_v<T, double>) {
      if (p.params.train && WholePlan::is_for<T>(p.device, p.in[0])) {
        candidates.add("whole_channels", [x = p.in[0], params = p.params, adds, device = p.device] {
          return whole_forward<T>(x, params, adds, device);
        });
      }
    }
  });
  const size_t own = candidates.all().size();
  cuda::offer_cudnn_batch_norm(p, candidates);
  if ((!adds && !is_relu(p.params)) || candidates.all().size() > own) return;
  Params plain = p.params;
  plain.activation = Activation::kNone;
  Candidates plans;
  cuda::offer_cudnn_batch_norm({plain, p.in.first(5), p.out, p.threads, p.math, p.device, p.search}, plans);
  candidates.add_changed(plans, "", [y = p.out[0], adds, params = p.params, device = p.device](auto kernel) {
    return with_passes_behind(std::move(kernel), y, adds, is_relu(params), device);
  });
}

}  // namespace plumb
