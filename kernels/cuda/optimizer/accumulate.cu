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
    for (int j = 0; j < kEach; ++j) total.of[j] = cuda::rounded<T>(cuda::wide(total.of[j]) + cuda::wide(term.of[j]));
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
    candidates.add("loop", [=, device = p.device, written = static_cast<double>(p.in[0].bytes())] {
      auto kernel = cuda::own("plumb:accumulate", device, 1, run);
      kernel->info().bytes += written;  // the gate adds what is read
      return kernel;
    });
  });
}

}  // namespace plumb
