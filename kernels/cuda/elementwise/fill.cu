#include "kernels/fill.h"

#include "kernels/cpu/movement/convert.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

template <class T>
struct FillArgs {
  T* y;
  T value;
  int64_t n;
};

template <class T>
__global__ void __launch_bounds__(256) fill_kernel(const FillArgs<T> a) {
  using V = cuda::Vector<T>;
  V v;
  for (int j = 0; j < V::kSize; ++j) v.of[j] = a.value;
  const int64_t vectors = a.n / V::kSize;
  for (int64_t i = cuda::thread_of_grid(); i < vectors; i += cuda::threads_of_grid()) reinterpret_cast<V*>(a.y)[i] = v;
  if (const int64_t i = vectors * V::kSize + cuda::thread_of_grid(); i < a.n) a.y[i] = a.value;
}

// By the size of an element: what is written is bytes.
template <class T, class Word>
void offer(const Problem<FillParams>& p, Candidates& candidates) {
  const auto value = std::bit_cast<Word>(cpu::convert<T>(static_cast<double>(p.params.value)));
  candidates.add("loop", [=, n = p.out[0].numel(), device = p.device] {
    return cuda::own("plumb:fill", device, 1, [=](const cuda::Queue& q, const Launch& l) {
      q.launch<fill_kernel<Word>>(cuda::grid_over(q.runtime(), n / cuda::Vector<Word>::kSize + 1),
                                  FillArgs<Word>{static_cast<Word*>(l.out[0]), value, n});
    });
  });
}

}  // namespace

void Fill::cuda(const Problem<Params>& p, Candidates& c) {
  dispatch_dtype(p.out[0].dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 1) {
      offer<T, uint8_t>(p, c);
    } else if constexpr (sizeof(T) == 2) {
      offer<T, uint16_t>(p, c);
    } else if constexpr (sizeof(T) == 4) {
      offer<T, uint32_t>(p, c);
    } else {
      offer<T, uint64_t>(p, c);
    }
  });
}

}  // namespace plumb
