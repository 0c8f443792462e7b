#include "kernels/copy.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

struct CopyArgs {
  const unsigned char* x;
  unsigned char* y;
  int64_t bytes;
};

__global__ void __launch_bounds__(256) copy_kernel(const CopyArgs a) {
  using V = cuda::Vector<uint32_t>;
  const int64_t vectors = a.bytes / static_cast<int64_t>(sizeof(V));
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < vectors; i += cuda::threads_of_grid())
    cuda::put(reinterpret_cast<V*>(a.y) + i, cuda::get(reinterpret_cast<const V*>(a.x) + i));
  if (const int64_t i = vectors * static_cast<int64_t>(sizeof(V)) + cuda::thread_of_grid(); i < a.bytes)
    cuda::put(a.y + i, cuda::get(a.x + i));
}

void offer(const TensorSpec& spec, Device device, bool is_into, Candidates& candidates) {
  const auto run = [is_into, bytes = static_cast<int64_t>(spec.bytes())](const cuda::Queue& q, const Launch& l) {
    const void* x = is_into ? l.in[1] : l.in[0];
    void* y = is_into ? l.in[0] : l.out[0];
    q.launch<copy_kernel>(cuda::grid_over(q.runtime(), bytes / 16 + 1),
                          CopyArgs{static_cast<const unsigned char*>(x), static_cast<unsigned char*>(y), bytes});
  };
  cuda::offer(candidates, "loop", "plumb:copy", device, 1, run);
}

}  // namespace

void Copy::cuda(const Problem<NoParams>& p, Candidates& c) { offer(p.in[0], p.device, false, c); }
void CopyInto::cuda(const Problem<NoParams>& p, Candidates& c) { offer(p.in[0], p.device, true, c); }

}  // namespace plumb
