#include "kernels/cast.h"

#include "kernels/cpu/movement/convert.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

template <class To, class From>
struct CastArgs {
  const From* x;
  To* y;
  int64_t n;
};

// As many elements at a time as 16 bytes hold of the wider dtype.
template <class To, class From>
constexpr int kEachOf = 16 / std::max(sizeof(To), sizeof(From));

template <class To, class From>
__global__ void __launch_bounds__(256) cast_kernel(const CastArgs<To, From> a) {
  cuda::for_dense<kEachOf<To, From>>(a.n, [&]<int kEach>(int64_t i) {
    const auto x = cuda::load_piece<kEach>(a.x + i);
    cuda::Piece<To, kEach> y;
    for (int j = 0; j < kEach; ++j) y.of[j] = cpu::convert<To>(x.of[j]);
    cuda::store_piece(a.y + i, y);
  });
}

}  // namespace

void Cast::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  dispatch_dtype(p.in[0].dtype, [&]<class From>() {
    dispatch_dtype(p.out[0].dtype, [&]<class To>() {
      const auto run = [n = p.out[0].numel()](const cuda::Queue& q, const Launch& l) {
        q.launch<cast_kernel<To, From>>(
            cuda::grid_over(q.runtime(), n / kEachOf<To, From> + 1),
            CastArgs<To, From>{static_cast<const From*>(l.in[0]), static_cast<To*>(l.out[0]), n});
      };
      cuda::offer(candidates, "loop", "plumb:cast", p.device, 1, run);
    });
  });
}

}  // namespace plumb
