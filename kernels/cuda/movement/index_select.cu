// Slices by their numbers, and sums of slices by the number of each. The sums are in the order of the index: its places
// are gathered by what they hold, and each such list is sorted before anything is added.
#include "kernels/index_select.h"

#include "kernels/cpu/movement/along.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"

namespace plumb {
namespace {

using cpu::Along;
using Count = unsigned long long;  // what atomicAdd takes

constexpr unsigned kThreads = 256;

// A tensor as (outer, extent, inner); its elements are divided into these.
struct Split {
  cuda::Divisor extent, inner;

  Split() = default;
  Split(int64_t e, int64_t i) : extent(std::max<int64_t>(1, e)), inner(std::max<int64_t>(1, i)) {}
};

// ---- Selecting.

template <class Word>
struct SelectArgs {
  const Word* x;
  const int64_t* index;
  Word* y;
  Split of_y;
  int64_t slices, count;  // of x; of y's words
  Fault* fault;
  uint64_t sentence;
};

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) index_select_kernel(const SelectArgs<Word> a) {
  const auto fetch = [&](int64_t at) {
    int64_t within = at, i = a.of_y.inner.divide(within);
    const int64_t outer = a.of_y.extent.divide(i), from = cuda::get(a.index + i);
    const bool is_good = from >= 0 && from < a.slices;
    if (!is_good && within == 0) cuda::report(a.fault, a.sentence, i, from, a.slices);
    return is_good ? cuda::get(a.x + (outer * a.slices + from) * a.of_y.inner.by + within) : Word{};
  };
  cuda::for_scattered<Word>(a.count, fetch, [&](int64_t at, const Word& v) { cuda::put(a.y + at, v); });
}

template <class Word>
std::unique_ptr<Kernel> select_kernel(const Along& x, int64_t n, int64_t run_bytes, Device device) {
  const int64_t words = run_bytes / static_cast<int64_t>(sizeof(Word));
  SelectArgs<Word> args{};
  args.of_y = Split(n, words);
  args.slices = x.extent;
  args.count = x.outer * n * words;
  args.fault = runtime_of(device).fault();
  args.sentence = cuda::sentence_of(IndexSelect::kBadIndex);
  return cuda::own("plumb:index_select", device, 1, [args](const cuda::Queue& q, const Launch& l) {
    SelectArgs<Word> now = args;
    now.x = static_cast<const Word*>(l.in[0]);
    now.index = static_cast<const int64_t*>(l.in[1]);
    now.y = static_cast<Word*>(l.out[0]);
    q.launch<index_select_kernel<Word>>(cuda::grid_over(q.runtime(), now.count, kThreads), now);
  });
}

// ---- Adding. For each slice of dx the places of the index that name it, as a list in `places`.

struct ListArgs {
  const int64_t* index;
  Count *sizes, *begins, *filled, *places;  // of each slice; its list is places[begin] to places[begin + size)
  Count* taken;                             // of places
  int64_t slices, n;
  Fault* fault;
  uint64_t sentence;
};
__device__ bool is_inside(const ListArgs& a, int64_t slice) { return slice >= 0 && slice < a.slices; }

__global__ void __launch_bounds__(kThreads) index_clear_kernel(const ListArgs a) {
#pragma unroll 1
  for (int64_t k = cuda::thread_of_grid(); k < a.slices; k += cuda::threads_of_grid()) a.sizes[k] = a.filled[k] = 0;
  if (cuda::thread_of_grid() == 0) *a.taken = 0;
}

__global__ void __launch_bounds__(kThreads) index_count_kernel(const ListArgs a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid()) {
    const int64_t slice = a.index[i];
    if (is_inside(a, slice)) {
      atomicAdd(&a.sizes[slice], Count{1});
    } else {
      cuda::report(a.fault, a.sentence, i, slice, a.slices);
    }
  }
}

// Where a list lies may differ from run to run: no result depends on it.
__global__ void __launch_bounds__(kThreads) index_place_kernel(const ListArgs a) {
#pragma unroll 1
  for (int64_t k = cuda::thread_of_grid(); k < a.slices; k += cuda::threads_of_grid())
    a.begins[k] = a.sizes[k] > 0 ? atomicAdd(a.taken, a.sizes[k]) : 0;
}

__global__ void __launch_bounds__(kThreads) index_fill_kernel(const ListArgs a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.n; i += cuda::threads_of_grid()) {
    const int64_t slice = a.index[i];
    if (is_inside(a, slice)) a.places[a.begins[slice] + atomicAdd(&a.filled[slice], Count{1})] = static_cast<Count>(i);
  }
}

__device__ void put_in_order(Count* list, Count i, Count j) {
  const Count a = list[i], b = list[j];
  if (a > b) list[i] = b, list[j] = a;
}
// Batcher's bitonic sort by a block, in the form in which every comparison puts the smaller one first: a list of any
// length is then sorted as if the largest numbers followed it.
__device__ void sort_by_block(Count* list, Count size) {
  const auto pass = [&](Count mask) {  // compares each with the one whose place differs by these bits
    for (Count i = threadIdx.x; i < size; i += kThreads) {
      const Count j = i ^ mask;
      if (j > i && j < size) put_in_order(list, i, j);
    }
    __syncthreads();
  };
  for (Count part = 2; part / 2 < size; part *= 2) {
    pass(part - 1);
    for (Count step = part / 4; step > 0; step /= 2) pass(step);
  }
}

struct SortShared {
  Count sizes[kThreads];
  Count longs;  // lists; a look at the size of each takes as long as all the rest
};
// A thread sorts a short list by insertion; the long ones of a block's slices all its threads sort together.
__global__ void __launch_bounds__(kThreads) index_sort_kernel(const ListArgs a) {
  constexpr Count kShort = 16;
  auto& s = cuda::shared<SortShared>();
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.x} * kThreads; first < a.slices; first += int64_t{gridDim.x} * kThreads) {
    const int64_t slice = first + threadIdx.x;
    const Count size = slice < a.slices ? a.sizes[slice] : 0;
    s.sizes[threadIdx.x] = size;
    if (threadIdx.x == 0) s.longs = 0;
    __syncthreads();
    if (size > kShort) {
      atomicAdd(&s.longs, Count{1});
    } else {
      for (Count i = 1; i < size; ++i) {
        Count* const list = a.places + a.begins[slice];
        for (Count j = i; j > 0 && list[j - 1] > list[j]; --j) put_in_order(list, j - 1, j);
      }
    }
    __syncthreads();
    for (unsigned k = 0; s.longs > 0 && k < kThreads; ++k) {
      if (s.sizes[k] > kShort) sort_by_block(a.places + a.begins[first + k], s.sizes[k]);
    }
    __syncthreads();
  }
}

template <class T>
struct AddArgs {
  const T* dy;
  T* dx;
  Split of_dx;
  int64_t n, count;  // slices of dy; pieces of dx
  const Count *sizes, *begins, *places;
};

// By pieces of dx, which lie in one slice: of_dx and count are in pieces.
template <class T, int kEach>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) index_add_kernel(const AddArgs<T> a) {
#pragma unroll 1
  for (int64_t at = cuda::thread_of_grid(); at < a.count; at += cuda::threads_of_grid()) {
    int64_t within = at, slice = a.of_dx.inner.divide(within);
    const int64_t outer = a.of_dx.extent.divide(slice), width = a.of_dx.inner.by;
    const T* const dy = a.dy + (outer * a.n * width + within) * kEach;
    const Count* const places = a.places + a.begins[slice];
    const auto size = static_cast<int64_t>(a.sizes[slice]);
    cuda::Compute<T> sum[kEach] = {};
#pragma unroll 4
    for (int64_t i = 0; i < size; ++i) {
      const auto v = cuda::load_piece<kEach>(dy + static_cast<int64_t>(places[i]) * width * kEach);
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum[j] += cuda::wide(v.of[j]);
    }
    cuda::Piece<T, kEach> all;
#pragma unroll
    for (int j = 0; j < kEach; ++j) all.of[j] = cuda::rounded<T>(sum[j]);
    cuda::store_piece(a.dx + at * kEach, all);
  }
}

template <class T, int kEach>
std::unique_ptr<Kernel> add_kernel(const Along& x, int64_t n, Device device) {
  ListArgs lists{};
  lists.slices = x.extent;
  lists.n = n;
  lists.fault = runtime_of(device).fault();
  lists.sentence = cuda::sentence_of(IndexAdd::kBadIndex);
  AddArgs<T> add{};
  add.of_dx = Split(x.extent, x.inner / kEach);
  add.n = n;
  add.count = x.outer * x.extent * (x.inner / kEach);
  auto kernel = cuda::own("plumb:index_add", device, 6, [=](const cuda::Queue& q, const Launch& l) {
    ListArgs of = lists;
    of.index = static_cast<const int64_t*>(l.in[1]);
    of.sizes = static_cast<Count*>(l.workspace);
    of.begins = of.sizes + of.slices;
    of.filled = of.begins + of.slices;
    of.places = of.filled + of.slices;
    of.taken = of.places + of.n;
    const cuda::Grid over_slices = cuda::grid_over(q.runtime(), of.slices, kThreads);
    const cuda::Grid over_index = cuda::grid_over(q.runtime(), of.n, kThreads);
    q.launch<index_clear_kernel>(over_slices, of);
    q.launch<index_count_kernel>(over_index, of);
    q.launch<index_place_kernel>(over_slices, of);
    q.launch<index_fill_kernel>(over_index, of);
    q.launch<index_sort_kernel>(over_slices, of);
    AddArgs<T> now = add;
    now.dy = static_cast<const T*>(l.in[0]);
    now.dx = static_cast<T*>(l.out[0]);
    now.sizes = of.sizes;
    now.begins = of.begins;
    now.places = of.places;
    q.launch<index_add_kernel<T, kEach>>(cuda::grid_over(q.runtime(), now.count, kThreads), now);
  });
  kernel->info().workspace_bytes = static_cast<size_t>(3 * x.extent + n + 1) * sizeof(Count);
  return kernel;
}

}  // namespace

void IndexSelect::cuda(const Problem<Params>& p, Candidates& candidates) {
  const Along x(p.in[0], static_cast<int>(p.params.dim));
  const int64_t n = p.in[1].numel(), run = x.inner * static_cast<int64_t>(size_of(p.in[0].dtype));
  const auto offer = [&]<class Word>() {
    candidates.add("loop", [=, device = p.device] { return select_kernel<Word>(x, n, run, device); });
  };
  if (run % 16 == 0) return offer.template operator()<cuda::Piece<uint32_t, 4>>();
  const int64_t word = run & -run;  // the largest power of two that divides it
  cuda::dispatch_size(static_cast<size_t>(word), offer);
}

void IndexAdd::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    const Along x(p.out[0], static_cast<int>(p.params.dim));
    constexpr int kEach = cuda::Vector<T>::kSize;
    candidates.add("loop", [x, n = p.in[1].numel(), device = p.device] {
      return x.inner % kEach == 0 ? add_kernel<T, kEach>(x, n, device) : add_kernel<T, 1>(x, n, device);
    });
  });
}

}  // namespace plumb
