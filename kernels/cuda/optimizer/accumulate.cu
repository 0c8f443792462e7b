#include "kernels/accumulate.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

template <class T>
struct AccumulateArgs {
  T* total;
  const T* term;
  int64_t n;
};

template <class T>
__global__ void __launch_bounds__(256) accumulate_kernel(const AccumulateArgs<T> a) {
  cuda::for_dense<cuda::Vector<T>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    auto total = cuda::load_piece<kEach>(a.total + i);
    const auto term = cuda::load_piece<kEach>(a.term + i);
    for (int j = 0; j < kEach; ++j) cuda::store(&total.of[j], cuda::load(&total.of[j]) + cuda::load(&term.of[j]));
    cuda::store_piece(a.total + i, total);
  });
}

}  // namespace

void Accumulate::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    const auto run = [n = p.in[0].numel()](const cuda::Queue& q, const Launch& l) {
      q.launch<accumulate_kernel<T>>(cuda::grid_over(q.runtime(), n / cuda::Vector<T>::kSize + 1),
                                     AccumulateArgs<T>{static_cast<T*>(l.in[0]), static_cast<const T*>(l.in[1]), n});
    };
    cuda::offer(candidates, "loop", "plumb:accumulate", p.device, 1, run);
  });
}

}  // namespace plumb
