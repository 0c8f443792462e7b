#include "kernels/accumulate.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/functors/unary.h"

namespace plumb {
namespace {

template <class T>
struct AccumulateArgs {
  T* total;
  const T* term;
  const T* relu;  // its output
  int64_t n;
};

template <class T, bool kIsRelu>
__global__ void __launch_bounds__(256) accumulate_kernel(const AccumulateArgs<T> a) {
  cuda::for_dense<cuda::Vector<T>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    auto total = cuda::load_piece<kEach>(a.total + i);
    const auto term = cuda::load_piece<kEach>(a.term + i);
    for (int j = 0; j < kEach; ++j) total.of[j] = cuda::rounded<T>(cuda::wide(total.of[j]) + cuda::wide(term.of[j]));
    if constexpr (kIsRelu) {
      const auto y = cuda::load_piece<kEach>(a.relu + i);
      for (int j = 0; j < kEach; ++j) {
        const auto sum = cuda::wide(total.of[j]);
        total.of[j] = cuda::rounded<T>(functors::Relu().backward(sum, cuda::wide(y.of[j])));
      }
    }
    cuda::store_piece(a.total + i, total);
  });
}

}  // namespace

void Accumulate::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    const bool is_relu = p.in.size() == 3;
    const auto run = [n = p.in[0].numel(), is_relu](const cuda::Queue& q, const Launch& l) {
      const auto blocks = cuda::grid_over(q.runtime(), n / cuda::Vector<T>::kSize + 1);
      const AccumulateArgs<T> args{static_cast<T*>(l.in[0]), static_cast<const T*>(l.in[1]),
                                   is_relu ? static_cast<const T*>(l.in[2]) : nullptr, n};
      is_relu ? q.launch<accumulate_kernel<T, true>>(blocks, args)
              : q.launch<accumulate_kernel<T, false>>(blocks, args);
    };
    candidates.add("loop", [=, device = p.device, written = static_cast<double>(p.in[0].bytes())] {
      auto kernel = cuda::own(is_relu ? "plumb:accumulate_relu" : "plumb:accumulate", device, 1, run);
      kernel->info().bytes += written;  // the gate adds what is read
      return kernel;
    });
  });
}

}  // namespace plumb
