// Sums of slices by the number of each, in the order of the index.
#include "kernels/cpu/movement/along.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/lines.h"
#include "kernels/cuda/movement/index_lists.h"
#include "kernels/index_select.h"

namespace plumb {
namespace {

using cpu::Along;

constexpr unsigned kThreads = 256;

template <class T>
struct AddArgs {
  const T* dy;
  T* dx;
  cuda::Split of_dx;        // into threads
  int64_t n, width, count;  // slices of dy; pieces of a slice; threads
  cuda::ListsOfSlices lists;
};

// By pieces of dx, of which a thread has kPieces of one slice, a warp apart: what it must know of the slice before it
// can read anything it then knows for all of them.
template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) index_add_kernel(const AddArgs<T> a) {
  constexpr int kApart = cuda::kWarp;
#pragma unroll 1
  for (int64_t at = cuda::thread_of_grid(); at < a.count; at += cuda::threads_of_grid()) {
    int64_t within = at, slice = a.of_dx.inner.divide(within);
    const int64_t run = slice, outer = a.of_dx.extent.divide(slice);
    within += within / kApart * kApart * (kPieces - 1);
    const auto is_there = [&](int k) { return kPieces == 1 || within + k * kApart < a.width; };
    const T* const dy = a.dy + (outer * a.n * a.width + within) * kEach;
    const cuda::Count* const places = a.lists.places + a.lists.begins[slice];
    const auto size = static_cast<int64_t>(a.lists.sizes[slice]);
    cuda::Compute<T> sum[kPieces][kEach] = {};
#pragma unroll 4
    for (int64_t i = 0; i < size; ++i) {
      const T* const from = dy + static_cast<int64_t>(places[i]) * a.width * kEach;
      cuda::Piece<T, kEach> v[kPieces] = {};  // loaded before anything is added, so that no branch is between the loads
#pragma unroll
      for (int k = 0; k < kPieces; ++k) {
        if (is_there(k)) v[k] = cuda::load_piece<kEach>(from + k * kApart * kEach);
      }
#pragma unroll
      for (int k = 0; k < kPieces; ++k) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[k][j] += cuda::wide(v[k].of[j]);
      }
    }
    T* const dx = a.dx + (run * a.width + within) * kEach;
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
      if (!is_there(k)) continue;
      cuda::Piece<T, kEach> all;
#pragma unroll
      for (int j = 0; j < kEach; ++j) all.of[j] = cuda::rounded<T>(sum[k][j]);
      cuda::store_piece(dx + k * kApart * kEach, all);
    }
  }
}

template <class T, int kEach, int kPieces>
std::unique_ptr<Kernel> add_kernel(const Along& x, int64_t n, Device device) {
  const cuda::IndexLists lists(runtime_of(device), x.extent, n, cuda::sentence_of(IndexAdd::kBadIndex));
  AddArgs<T> add{};
  add.n = n;
  add.width = x.inner / kEach;
  constexpr int64_t kOfWarp = kPieces * cuda::kWarp;
  const int64_t threads = kPieces == 1 ? add.width : (add.width + kOfWarp - 1) / kOfWarp * cuda::kWarp;
  add.of_dx = cuda::Split(x.extent, threads);
  add.count = x.outer * x.extent * threads;
  auto kernel = cuda::own("plumb:index_add", device, lists.launches() + 1, [=](const cuda::Queue& q, const Launch& l) {
    AddArgs<T> now = add;
    now.lists = lists.launch(q, static_cast<const int64_t*>(l.in[1]), l.workspace);
    now.dy = static_cast<const T*>(l.in[0]);
    now.dx = static_cast<T*>(l.out[0]);
    q.launch<index_add_kernel<T, kEach, kPieces>>(cuda::grid_over(q.runtime(), now.count, kThreads), now);
  });
  kernel->info().workspace_bytes = lists.workspace_bytes();
  return kernel;
}

}  // namespace

void IndexAdd::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    const Along x(p.out[0], static_cast<int>(p.params.dim));
    constexpr int kEach = cuda::Vector<T>::kSize;
    candidates.add("loop", [x, n = p.in[1].numel(), device = p.device] {
      if (x.inner % kEach != 0) return add_kernel<T, 1, 1>(x, n, device);
      const bool is_long = x.inner / kEach > cuda::kWarp;  // a slice, for a warp
      return is_long ? add_kernel<T, kEach, 2>(x, n, device) : add_kernel<T, kEach, 1>(x, n, device);
    });
  });
}

}  // namespace plumb
