#include "kernels/fill.h"

#include "kernels/cpu/movement/convert.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

template <class Word>
struct FillArgs {
  Word* y;
  Word value;
  int64_t n;
};

template <class Word>
__global__ void __launch_bounds__(256) fill_kernel(const FillArgs<Word> a) {
  cuda::for_dense<cuda::Vector<Word>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    cuda::Piece<Word, kEach> v;
    for (int j = 0; j < kEach; ++j) v.of[j] = a.value;
    cuda::store_piece(a.y + i, v);
  });
}

}  // namespace

// By the size of an element: what is written is bytes.
void Fill::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec& y = p.out[0];
  cuda::dispatch_size(size_of(y.dtype), [&]<class Word>() {
    const auto value = cpu::bits_of<Word>(y.dtype, static_cast<double>(p.params.value));
    cuda::offer(c, "loop", "plumb:fill", p.device, 1, [value, n = y.numel()](const cuda::Queue& q, const Launch& l) {
      q.launch<fill_kernel<Word>>(cuda::grid_over(q.runtime(), n / cuda::Vector<Word>::kSize + 1),
                                  FillArgs<Word>{static_cast<Word*>(l.out[0]), value, n});
    });
  });
}

}  // namespace plumb
