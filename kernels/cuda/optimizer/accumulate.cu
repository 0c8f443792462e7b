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
  using V = cuda::Vector<T>;
  const int64_t vectors = a.n / V::kSize;
  for (int64_t i = cuda::thread_of_grid(); i < vectors; i += cuda::threads_of_grid()) {
    V total = reinterpret_cast<const V*>(a.total)[i];
    const V term = reinterpret_cast<const V*>(a.term)[i];
    for (int j = 0; j < V::kSize; ++j) cuda::store(&total.of[j], cuda::load(&total.of[j]) + cuda::load(&term.of[j]));
    reinterpret_cast<V*>(a.total)[i] = total;
  }
  if (const int64_t i = vectors * V::kSize + cuda::thread_of_grid(); i < a.n)
    cuda::store(a.total + i, cuda::load(a.total + i) + cuda::load(a.term + i));
}

}  // namespace

void Accumulate::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [n = p.in[0].numel(), device = p.device] {
      return cuda::own("plumb:accumulate", device, 1, [=](const cuda::Queue& q, const Launch& l) {
        q.launch<accumulate_kernel<T>>(cuda::grid_over(q.runtime(), n / cuda::Vector<T>::kSize + 1),
                                       AccumulateArgs<T>{static_cast<T*>(l.in[0]), static_cast<const T*>(l.in[1]), n});
      });
    });
  });
}

}  // namespace plumb
