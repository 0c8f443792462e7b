#include "dispatch/random_fill.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

constexpr int64_t kWords = 4;  // of a counter

template <class T>
struct RandomArgs {
  T* y;
  int64_t n;
  detail::Distribution distribution;
  uint64_t seed;
};

/// A counter a thread.
template <class T>
__global__ void __launch_bounds__(256) random_kernel(const RandomArgs<T> a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i * kWords < a.n; i += cuda::threads_of_grid()) {
    double v[kWords];
    a.distribution.numbers(Philox::block(a.seed, static_cast<uint64_t>(i), 0), v);
    cuda::Piece<T, kWords> y;
    for (int j = 0; j < kWords; ++j) y.of[j] = detail::Distribution::rounded<T>(v[j]);
    if ((i + 1) * kWords <= a.n) {
      cuda::store_piece(a.y + i * kWords, y);
      continue;
    }
    for (int j = 0; i * kWords + j < a.n; ++j) cuda::put(a.y + i * kWords + j, y.of[j]);
  }
}

}  // namespace

void RandomFill::cuda(const Problem<Params>& p, Candidates& candidates) {
  dispatch_dtype(p.out[0].dtype, [&]<class T>() {
    const auto run = [n = p.out[0].numel(), params = p.params](const cuda::Queue& q, const Launch& l) {
      q.launch<random_kernel<T>>(cuda::grid_over(q.runtime(), (n + kWords - 1) / kWords),
                                 RandomArgs<T>{static_cast<T*>(l.out[0]), n, params.distribution(), params.seed});
    };
    cuda::offer(candidates, "philox", "plumb:random", p.device, 1, run);
  });
}

}  // namespace plumb
