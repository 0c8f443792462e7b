// The gradients of batch normalisation, also of what a ReLU leaves: the channels' sums, and then one pass over the
// elements; or both by who has whole channels.
#include "kernels/batch_norm.h"
#include "kernels/cuda/normalization/batch_norm.cuh"
#include "kernels/cuda/normalization/batch_norm_whole.cuh"
#include "kernels/cuda/vendor/offers.h"

namespace plumb {
namespace {

using cuda::Compute;
using cuda::norm::Backward;
using cuda::norm::coefficient_bytes;
using cuda::norm::Coefficients;
using cuda::norm::Gradients;
using cuda::norm::Map;
using cuda::norm::MapArgs;
using cuda::norm::MapPlan;
using cuda::norm::WholePlan;

constexpr unsigned kThreads = 256;

template <class T>
Backward<T> backward_of(const cuda::ChannelView& view, const BatchNormParams& p, const Launch& l) {
  using C = Compute<T>;
  Backward<T> b{};
  b.dy = static_cast<const T*>(l.in[0]), b.x = static_cast<const T*>(l.in[1]);
  b.gamma = static_cast<const C*>(l.in[2]), b.mean = static_cast<const C*>(l.in[3]);
  b.spread = static_cast<const C*>(l.in[4]);
  if (p.activation == Activation::kRelu) b.beta = static_cast<const C*>(l.in[5]);
  b.dgamma = static_cast<C*>(l.out[0]), b.dbeta = static_cast<C*>(l.out[1]);
  b.k = static_cast<Coefficients<C>*>(l.workspace);
  b.epsilon = p.epsilon, b.is_train = p.train != 0;
  b.count = static_cast<double>(view.outer * view.inner);
  return b;
}
template <class T>
MapArgs<T> map_of(const Backward<T>& b, void* out) {
  return {.x = b.x, .other = b.dy, .out = static_cast<T*>(out), .k = b.k, .beta = b.beta};
}

template <class T, bool kIsRelu>
std::unique_ptr<Kernel> backward_kernel(const TensorSpec& x, const BatchNormParams& p, bool needs_dx, Device device) {
  constexpr Map kTraining = kIsRelu ? Map::kBackwardRelu : Map::kBackward;
  constexpr Map kInUse = kIsRelu ? Map::kLinearRelu : Map::kLinear;
  const cuda::ChannelView view(x);
  const cuda::ChannelSumsPlan<Gradients<T, kIsRelu>> plan(runtime_of(device), view);
  const MapPlan map = MapPlan::of<T>(runtime_of(device), view);
  const size_t of_coefficients = coefficient_bytes<T>(view.channels);
  const int launches = plan.launches() + (needs_dx && x.numel() > 0);
  auto kernel = cuda::own("plumb:batch_norm_backward", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    const Backward<T> b = backward_of<T>(view, p, l);
    plan.launch(q, Gradients<T, kIsRelu>{b}, static_cast<char*>(l.workspace) + of_coefficients);
    if (!needs_dx) return;
    const MapArgs<T> a = map_of(b, l.out[2]);
    b.is_train ? map.launch<kTraining>(q, a) : map.launch<kInUse>(q, a);
  });
  kernel->info().workspace_bytes = of_coefficients + plan.workspace_bytes();
  return kernel;
}

template <class T, bool kIsRelu>
std::unique_ptr<Kernel> whole_backward(const TensorSpec& x, const BatchNormParams& p, Device device) {
  constexpr Map kMap = kIsRelu ? Map::kBackwardRelu : Map::kBackward;
  const cuda::ChannelView view(x);
  const WholePlan plan = WholePlan::of<T>(runtime_of(device), view);
  auto kernel = cuda::own("plumb:batch_norm_backward", device, 1, [=](const cuda::Queue& q, const Launch& l) {
    const Backward<T> b = backward_of<T>(view, p, l);
    plan.launch<kMap>(q, Gradients<T, kIsRelu>{b}, map_of(b, l.out[2]));
  });
  kernel->info().workspace_bytes = coefficient_bytes<T>(view.channels);
  return kernel;
}

// What tells of x whether a ReLU let something through.
template <class T>
struct MaskArgs {
  Backward<T> b;
  int64_t channels;
};
template <class T>
__global__ void __launch_bounds__(kThreads) batch_norm_mask_kernel(const MaskArgs<T> a) {
#pragma unroll 1
  for (int64_t c = cuda::thread_of_grid(); c < a.channels; c += cuda::threads_of_grid())
    cuda::put(a.b.k + c, cuda::norm::coefficients<Compute<T>>(static_cast<double>(a.b.mean[c]), 0, 0, a.b.scale(c)));
}

// What a ReLU leaves of dy, and then `kernel` on that, which knows of none.
std::unique_ptr<Kernel> with_relu_backward(std::unique_ptr<Kernel> kernel, const TensorSpec& x,
                                           const BatchNormParams& p, Device device) {
  std::unique_ptr<Kernel> both;
  const size_t of_inner = plumb::detail::aligned(kernel->info().workspace_bytes);
  const int launches = kernel->info().launches + 2;
  cuda::dispatch_compute(x.dtype, [&]<class T>() {
    const cuda::ChannelView view(x);
    const MapPlan map = MapPlan::of<T>(runtime_of(device), view);
    auto left = cuda::own("plumb:relu", device, 2, [=](const cuda::Queue& q, const Launch& l) {
      Backward<T> b = backward_of<T>(view, p, l);
      b.k = static_cast<Coefficients<Compute<T>>*>(l.workspace);
      q.launch<batch_norm_mask_kernel<T>>(cuda::grid_over(q.runtime(), view.channels, kThreads),
                                          MaskArgs<T>{b, view.channels});
      map.launch<Map::kLeftByRelu>(q, map_of(b, static_cast<char*>(l.workspace) + coefficient_bytes<T>(view.channels)));
    });
    const size_t of_coefficients = coefficient_bytes<T>(view.channels);
    both = wrap_kernel(std::move(kernel), "", "+relu_backward",
                       [=, left = std::move(left)](const Kernel& inner, const Launch& l) {
                         char* const memory = static_cast<char*>(l.workspace) + of_inner;
                         left->run({l.in, l.out, memory, l.stream});
                         void* const in[] = {memory + of_coefficients, l.in[1], l.in[2], l.in[3], l.in[4]};
                         inner.run({in, l.out, l.workspace, l.stream});
                       });
    both->info().workspace_bytes = of_inner + of_coefficients + plumb::detail::aligned(x.bytes());
    both->info().launches = launches;
  });
  return both;
}

template <class T, bool kIsRelu>
void offer_own(const Problem<BatchNormParams>& p, Candidates& candidates) {
  const bool needs_dx = p.out.size() == 3;
  candidates.add("loop", [x = p.in[1], params = p.params, needs_dx, device = p.device] {
    return backward_kernel<T, kIsRelu>(x, params, needs_dx, device);
  });
  if constexpr (kIsRelu) {  // the sums have more registers then, and what they read lies in the caches if it is little
    candidates.add("relu_apart", [x = p.in[1], params = p.params, needs_dx, device = p.device] {
      BatchNormParams plain = params;
      plain.activation = Activation::kNone;
      return with_relu_backward(backward_kernel<T, false>(x, plain, needs_dx, device), x, params, device);
    });
  }
  if constexpr (!std::is_same_v<T, double>) {
    if (!needs_dx || !p.params.train || !WholePlan::is_for<T>(p.device, p.in[1])) return;
    candidates.add("whole_channels", [x = p.in[1], params = p.params, device = p.device] {
      return whole_backward<T, kIsRelu>(x, params, device);
    });
  }
}

}  // namespace

void BatchNormBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  const bool is_relu = p.params.activation == Activation::kRelu;
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    is_relu ? offer_own<T, true>(p, candidates) : offer_own<T, false>(p, candidates);
  });
  if (!is_relu) return cuda::offer_cudnn_batch_norm_backward(p, candidates);
  Candidates plans;
  cuda::offer_cudnn_batch_norm_backward(p, plans);
  candidates.add_changed(plans, "", [x = p.in[1], params = p.params, device = p.device](auto kernel) {
    return with_relu_backward(std::move(kernel), x, params, device);
  });
}

}  // namespace plumb
