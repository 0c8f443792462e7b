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
__global__ void __launch_bounds__(256) cast_kernel(const CastArgs<To, From> a) {
  constexpr int kEach = 16 / (sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));
  struct alignas(kEach * sizeof(From)) Source {
    From of[kEach];
  };
  struct alignas(kEach * sizeof(To)) Result {
    To of[kEach];
  };
  const int64_t pieces = a.n / kEach;
  for (int64_t i = cuda::thread_of_grid(); i < pieces; i += cuda::threads_of_grid()) {
    const Source x = reinterpret_cast<const Source*>(a.x)[i];
    Result y;
    for (int j = 0; j < kEach; ++j) y.of[j] = cpu::convert<To>(x.of[j]);
    reinterpret_cast<Result*>(a.y)[i] = y;
  }
  if (const int64_t i = pieces * kEach + cuda::thread_of_grid(); i < a.n) a.y[i] = cpu::convert<To>(a.x[i]);
}

}  // namespace

void Cast::cuda(const Problem<NoParams>& p, Candidates& candidates) {
  dispatch_dtype(p.in[0].dtype, [&]<class From>() {
    dispatch_dtype(p.out[0].dtype, [&]<class To>() {
      candidates.add("loop", [n = p.out[0].numel(), device = p.device] {
        return cuda::own("plumb:cast", device, 1, [=](const cuda::Queue& q, const Launch& l) {
          constexpr int64_t kEach = 16 / std::max(sizeof(To), sizeof(From));
          q.launch<cast_kernel<To, From>>(
              cuda::grid_over(q.runtime(), n / kEach + 1),
              CastArgs<To, From>{static_cast<const From*>(l.in[0]), static_cast<To*>(l.out[0]), n});
        });
      });
    });
  });
}

}  // namespace plumb
