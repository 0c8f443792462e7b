#include "kernels/cuda/normalization/layer_norm_backward.cuh"

namespace plumb {
namespace {

using namespace cuda::layers;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kWarp;

template <class T>
BackwardArgs<T> backward_args(const LayerNormRows& v, const LayerNormGradients& wanted, const Launch& l) {
  using C = Compute<T>;
  return {static_cast<const T*>(l.in[0]),
          static_cast<const T*>(l.in[1]),
          static_cast<const C*>(l.in[2]),
          static_cast<const C*>(l.in[3]),
          static_cast<const C*>(wanted.has_w ? l.in[4] : nullptr),
          static_cast<T*>(wanted.needs_dx ? l.out[wanted.dx()] : nullptr),
          static_cast<C*>(l.workspace),
          v.rows,
          v.columns};
}

template <class T, int kEach>
std::unique_ptr<Kernel> two_passes(const LayerNormRows& v, const LayerNormGradients& wanted, Device device) {
  using C = Compute<T>;
  Runtime& r = runtime_of(device);
  const cuda::Grid grid = grid_of_rows(r, v);
  const cuda::ChannelSumsPlan<ParameterSums<T>> plan(
      r, cuda::ChannelView(TensorSpec(Shape{v.rows, v.columns}, dtype_of<T>)));
  const int launches = (wanted.needs_dx && v.rows > 0 ? 1 : 0) + (wanted.needs_dw ? plan.launches() : 0);
  auto kernel = cuda::own("plumb:layer_norm_backward", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    const BackwardArgs<T> a = backward_args<T>(v, wanted, l);
    if (wanted.needs_dx) {
      is_long(v) ? q.launch<layer_norm_backward_by_blocks_kernel<T, kEach, 0>>(grid, a)
                 : q.launch<layer_norm_backward_by_warps_kernel<T, kEach, 0>>(grid, a);
    }
    if (!wanted.needs_dw) return;
    const ParameterSums<T> sums{
        a.dy, a.x, a.mean, a.inv_std, static_cast<C*>(l.out[0]), static_cast<C*>(l.out[1]), cuda::Divisor(v.columns)};
    plan.launch(q, sums, l.workspace);
  });
  if (wanted.needs_dw) kernel->info().workspace_bytes = plan.workspace_bytes();
  return kernel;
}

/// dx with parts of dw and db by kFunction, and then their sums.
template <class T, auto kFunction>
std::unique_ptr<Kernel> one_pass(const LayerNormRows& v, const LayerNormGradients& wanted, Device device) {
  using C = Compute<T>;
  constexpr int64_t kLeastTurns = 2, kBlocksOfMultiprocessor = 2;
  Runtime& r = runtime_of(device);
  cuda::Grid grid = grid_of_rows(r, v);
  const int64_t blocks = std::clamp<int64_t>(v.rows / (kLeastTurns * rows_at_a_time(v)), 1,
                                             kBlocksOfMultiprocessor * r.properties().multiprocessors);
  grid.blocks.x = static_cast<unsigned>(std::min<int64_t>(blocks, grid.blocks.x));
  auto kernel = cuda::own("plumb:layer_norm_backward", device, 2, [=](const cuda::Queue& q, const Launch& l) {
    const BackwardArgs<T> a = backward_args<T>(v, wanted, l);
    q.launch<kFunction>(grid, a);
    const PartsArgs<C> of_all{a.parts, static_cast<C*>(l.out[0]), static_cast<C*>(l.out[1]), v.columns, grid.blocks.x};
    const cuda::Grid of_parts = cuda::grid_of(q.runtime(), (2 * v.columns + kWarp - 1) / kWarp, kRowThreads);
    q.launch<layer_norm_parts_kernel<C>>(of_parts, of_all);
  });
  kernel->info().workspace_bytes = grid.blocks.x * 2 * static_cast<size_t>(v.columns) * sizeof(C);
  return kernel;
}

template <class T, int kEach>
void offer_backward(const Problem<LayerNormParams>& p, Candidates& candidates) {
  const LayerNormRows v(p.in[1], p.params);
  const LayerNormGradients wanted(p);
  // Columns of a thread, which has sums of as many for dw and for db. 768 are 24 a lane.
  constexpr int kFew = 8, kManyOfBlock = 16, kSomeOfWarp = 24, kManyOfWarp = 32;
  const int64_t sharers = is_long(v) ? kRowThreads : kWarp, of_thread = (v.columns + sharers - 1) / sharers;
  // f64 is for checking, and would take too many registers.
  if constexpr (!std::is_same_v<T, double>) {
    if (wanted.needs_dw && wanted.needs_dx && v.rows > 0 && of_thread <= (is_long(v) ? kManyOfBlock : kManyOfWarp)) {
      candidates.add("one_pass", [=, device = p.device] {
        if (is_long(v)) {
          return of_thread <= kFew
                     ? one_pass<T, &layer_norm_backward_by_blocks_kernel<T, kEach, kFew / kEach>>(v, wanted, device)
                     : one_pass<T, &layer_norm_backward_by_blocks_kernel<T, kEach, kManyOfBlock / kEach>>(v, wanted,
                                                                                                          device);
        }
        if (of_thread <= kFew)
          return one_pass<T, &layer_norm_backward_by_warps_kernel<T, kEach, kFew / kEach>>(v, wanted, device);
        return of_thread <= kSomeOfWarp
                   ? one_pass<T, &layer_norm_backward_by_warps_kernel<T, kEach, kSomeOfWarp / kEach>>(v, wanted, device)
                   : one_pass<T, &layer_norm_backward_by_warps_kernel<T, kEach, kManyOfWarp / kEach>>(v, wanted,
                                                                                                      device);
      });
    }
  }
  candidates.add("rows", [=, device = p.device] { return two_passes<T, kEach>(v, wanted, device); });
}

}  // namespace

void LayerNormBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    constexpr int kEach = cuda::Vector<T>::kSize;
    const bool has_vectors = detail::LayerNormRows(p.in[1], p.params).columns % kEach == 0;
    has_vectors ? offer_backward<T, kEach>(p, candidates) : offer_backward<T, 1>(p, candidates);
  });
}

}  // namespace plumb
