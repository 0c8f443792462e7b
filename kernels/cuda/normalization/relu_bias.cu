// The backward pass of a bias and its ReLU: the channels' sums, of what is written on the way.
#include "kernels/relu_bias.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/normalization/channel_sums.cuh"

namespace plumb {
namespace {

using cuda::Piece;

template <class T>
struct KeptSums {
  using Element = T;
  using C = cuda::Compute<T>;
  struct State {
    double sum = 0;
  };
  struct Chunk {
    C sum;
  };
  const T *dy, *y;
  T *dz, *db;

  template <int kEach>
  struct Fetched {
    Piece<T, kEach> gradient, output;
    int64_t at;
  };
  template <int kEach>
  __device__ Fetched<kEach> fetch(int64_t at) const {
    return {cuda::load_piece<kEach>(dy + at), cuda::load_piece<kEach>(y + at), at};
  }
  /// Writes what is left of the gradient.
  template <int kEach>
  __device__ Piece<T, kEach> kept(const Fetched<kEach>& v) const {
    Piece<T, kEach> left;
    for (int j = 0; j < kEach; ++j)
      left.of[j] = cuda::wide(v.output.of[j]) > 0 ? v.gradient.of[j] : cuda::rounded<T>(C(0));
    cuda::store_piece(dz + cuda::opaque(v.at), left);
    return left;
  }
  __device__ Chunk begin(const State&, int64_t, int64_t) const { return {0}; }
  template <int kEach>
  __device__ void add(Chunk& chunk, const Piece<T, kEach>& v, int j) const {
    chunk.sum += cuda::wide(v.of[j]);
  }
  __device__ void end(State& s, const Chunk& chunk, int) const { s.sum += static_cast<double>(chunk.sum); }
  __device__ State merge(const State& a, const State& b) const { return {a.sum + b.sum}; }
  __device__ State from_lane(const State& s, int distance) const {
    return {__shfl_xor_sync(cuda::kAllLanes, s.sum, distance)};
  }
  __device__ void finish(const State& s, int64_t c) const { db[c] = cuda::rounded<T>(static_cast<C>(s.sum)); }
};

template <class T>
std::unique_ptr<Kernel> kernel_of(const TensorSpec& y, Device device) {
  const cuda::ChannelSumsPlan<KeptSums<T>> plan(runtime_of(device), cuda::ChannelView(y));
  auto kernel =
      cuda::own("plumb:relu_bias_backward", device, plan.launches(), [=](const cuda::Queue& q, const Launch& l) {
        const KeptSums<T> sums{static_cast<const T*>(l.in[0]), static_cast<const T*>(l.in[1]),
                               static_cast<T*>(l.out[0]), static_cast<T*>(l.out[1])};
        plan.launch(q, sums, l.workspace);
      });
  kernel->info().workspace_bytes = plan.workspace_bytes();
  return kernel;
}

}  // namespace

void ReluBiasBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [y = p.in[1], device = p.device] { return kernel_of<T>(y, device); });
  });
}

}  // namespace plumb
