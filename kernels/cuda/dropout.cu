#include "kernels/dropout.h"

#include "core/random.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"

namespace plumb {
namespace {

using cuda::Compute;

constexpr unsigned kThreads = 256;

template <class T>
struct DropoutArgs {
  const T* x;
  T* y;
  uint8_t* mask;         // or null
  const int64_t* state;  // seed, and blocks used so far
  int64_t n;
  uint32_t threshold;
  Compute<T> scale;
  cuda::Steps logical;  // from memory to the row-major order of the logical shape
};

template <class T>
__device__ void drop(const DropoutArgs<T>& a, int64_t i, uint32_t word) {
  const bool is_kept = word >= a.threshold;
  cuda::store(a.y + i, is_kept ? cuda::load(a.x + i) * a.scale : Compute<T>(0));
  if (a.mask) a.mask[i] = is_kept;
}

// Memory in logical order: a thread has the four elements of a block of random words.
template <class T>
__global__ void __launch_bounds__(kThreads) dropout_kernel(const DropoutArgs<T> a) {
  const auto seed = static_cast<uint64_t>(a.state[0]), offset = static_cast<uint64_t>(a.state[1]);
  for (int64_t block = cuda::thread_of_grid(); 4 * block < a.n; block += cuda::threads_of_grid()) {
    const auto words = Philox::block(seed, offset + static_cast<uint64_t>(block), kDropoutStream);
    for (int64_t j = 0; j < 4; ++j) {
      if (4 * block + j < a.n) drop(a, 4 * block + j, words[static_cast<size_t>(j)]);
    }
  }
}

// Other layouts: each element looks up the block of its logical index.
template <class T>
__global__ void __launch_bounds__(kThreads) dropout_in_layout_kernel(const DropoutArgs<T> a) {
  const auto seed = static_cast<uint64_t>(a.state[0]), offset = static_cast<uint64_t>(a.state[1]);
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid()) {
    const int64_t index = a.logical.of_x(i);
    const auto words = Philox::block(seed, offset + static_cast<uint64_t>(index / 4), kDropoutStream);
    drop(a, i, words[static_cast<size_t>(index % 4)]);
  }
}

struct AdvanceArgs {
  int64_t* state;
  int64_t blocks;
};
__global__ void dropout_advance_kernel(const AdvanceArgs a) { a.state[1] += a.blocks; }

template <class T>
struct DropoutBackwardArgs {
  const T* dy;
  const uint8_t* mask;
  T* dx;
  int64_t n;
  Compute<T> scale;
};
template <class T>
__global__ void __launch_bounds__(kThreads) dropout_backward_kernel(const DropoutBackwardArgs<T> a) {
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid())
    cuda::store(a.dx + i, a.mask[i] ? cuda::load(a.dy + i) * a.scale : Compute<T>(0));
}

}  // namespace

void DropoutForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_computed(p.in[0].dtype, [&]<class T>() {
    candidates.add("philox", [x = p.in[0], params = p.params, has_mask = p.out.size() == 2, device = p.device] {
      const double probability = params.p;
      DropoutArgs<T> args{};
      args.n = x.numel();
      args.threshold = static_cast<uint32_t>(probability * 0x1p32);
      args.scale = static_cast<Compute<T>>(1 / (1 - probability));
      const bool is_logical = x.layout == Layout::kNchw;
      const Strides logical = strides_of(x.with(Layout::kNchw));
      const DimOrder order = memory_order(x.layout, x.rank());
      for (int i = x.rank() - 1; i >= 0; --i) args.logical.add(x.shape[order[i]], logical[order[i]], 0);
      return cuda::own("plumb:dropout", device, 2, [=](const cuda::Queue& q, const Launch& l) {
        DropoutArgs<T> now = args;
        now.x = static_cast<const T*>(l.in[0]);
        now.y = static_cast<T*>(l.out[0]);
        now.mask = has_mask ? static_cast<uint8_t*>(l.out[1]) : nullptr;
        now.state = static_cast<const int64_t*>(l.in[1]);
        if (is_logical) {
          q.launch<dropout_kernel<T>>(cuda::grid_over(q.runtime(), (now.n + 3) / 4, kThreads), now);
        } else {
          q.launch<dropout_in_layout_kernel<T>>(cuda::grid_over(q.runtime(), now.n, kThreads), now);
        }
        q.launch<dropout_advance_kernel>(cuda::Grid{{1}, {1}}, AdvanceArgs{static_cast<int64_t*>(l.in[1]), (now.n + 3) / 4});
      });
    });
  });
}

void DropoutBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_computed(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [n = p.in[0].numel(), params = p.params, device = p.device] {
      const auto scale = static_cast<Compute<T>>(1 / (1 - static_cast<double>(params.p)));
      return cuda::own("plumb:dropout_backward", device, 1, [=](const cuda::Queue& q, const Launch& l) {
        q.launch<dropout_backward_kernel<T>>(
            cuda::grid_over(q.runtime(), n, kThreads),
            DropoutBackwardArgs<T>{static_cast<const T*>(l.in[0]), static_cast<const uint8_t*>(l.in[1]),
                                   static_cast<T*>(l.out[0]), n, scale});
      });
    });
  });
}

}  // namespace plumb
