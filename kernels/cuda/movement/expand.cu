#include "kernels/cpu/strided.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"
#include "kernels/reduce.h"

namespace plumb {
namespace {

template <class Word>
struct ExpandArgs {
  const Word* x;
  Word* y;
  cuda::Steps steps;
};

template <class Word>
__global__ void __launch_bounds__(256) expand_kernel(const ExpandArgs<Word> a) {
  for (int64_t i = cuda::thread_of_grid(); i < a.steps.count; i += cuda::threads_of_grid())
    a.y[i] = a.x[a.steps.of_x(i)];
}

template <class Word>
void offer(const Problem<NoParams>& p, Candidates& candidates) {
  candidates.add("loop", [x = p.in[0], y = p.out[0], device = p.device] {
    const Strides from = cpu::broadcast_strides(x, y.shape);
    const DimOrder order = memory_order(y.layout, y.rank());
    cuda::Steps steps;
    for (int i = y.rank() - 1; i >= 0; --i) steps.add(y.shape[order[i]], from[order[i]], 0);
    return cuda::own("plumb:expand", device, 1, [=](const cuda::Queue& q, const Launch& l) {
      q.launch<expand_kernel<Word>>(
          cuda::grid_over(q.runtime(), steps.count),
          ExpandArgs<Word>{static_cast<const Word*>(l.in[0]), static_cast<Word*>(l.out[0]), steps});
    });
  });
}

}  // namespace

void Expand::cuda(const Problem<NoParams>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer<Word>(p, c); });
}

}  // namespace plumb
