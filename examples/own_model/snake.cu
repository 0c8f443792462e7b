// The op's kernels for CUDA, which the host's compiler takes as well, for the emulated device (docs/cuda.md).
#include "snake.h"

#include <plumbline/kernels/cuda/launch.h>

using namespace plumb;

namespace {

// A __global__ function takes one plain struct.
struct ForwardArgs {
  const float* x;
  float* y;
  int64_t n;
};
__global__ void snake_kernel(const ForwardArgs a) {
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid()) a.y[i] = snake_of(a.x[i]);
}

struct BackwardArgs {
  const float *dy, *x;
  float* dx;
  int64_t n;
};
__global__ void snake_backward_kernel(const BackwardArgs a) {
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid())
    a.dx[i] = a.dy[i] * slope_of_snake(a.x[i]);
}

}  // namespace

void SnakeForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  candidates.add("loop", [n = p.out[0].numel(), device = p.device] {
    constexpr int kLaunches = 1;  // of a run
    return cuda::own("snake_forward", device, kLaunches, [=](const cuda::Queue& q, const Launch& l) {
      q.launch<snake_kernel>(cuda::grid_over(q.runtime(), n),
                             ForwardArgs{static_cast<const float*>(l.in[0]), static_cast<float*>(l.out[0]), n});
    });
  });
}

void SnakeBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  candidates.add("loop", [n = p.out[0].numel(), device = p.device] {
    constexpr int kLaunches = 1;
    return cuda::own("snake_backward", device, kLaunches, [=](const cuda::Queue& q, const Launch& l) {
      const BackwardArgs args{static_cast<const float*>(l.in[0]), static_cast<const float*>(l.in[1]),
                              static_cast<float*>(l.out[0]), n};
      q.launch<snake_backward_kernel>(cuda::grid_over(q.runtime(), n), args);
    });
  });
}
