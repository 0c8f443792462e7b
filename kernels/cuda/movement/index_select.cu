// Slices by their numbers, and sums of slices by the number of each. The sums are in the order of the index: its places
// are gathered by what they hold, and each such list is sorted before anything is added. One block makes the lists if
// they fit its shared memory, for every further launch takes longer than it works.
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

template <class Number>
__device__ void put_in_order(Number* list, Count i, Count j) {
  const Number a = list[i], b = list[j];
  if (a > b) list[i] = b, list[j] = a;
}
// Batcher's bitonic sort by a block, in the form in which every comparison puts the smaller one first: a list of any
// length is then sorted as if the largest numbers followed it.
template <class Number>
__device__ void sort_by_block(Number* list, Count size) {
  const auto pass = [&](Count mask) {  // compares each with the one whose place differs by these bits
    for (Count i = threadIdx.x; i < size; i += blockDim.x) {
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

// ---- All lists by one block.

constexpr unsigned kListThreads = 1024;
constexpr int kMostSlices = 6144, kMostPlaces = 8192;  // what its shared memory holds
constexpr int kOfThread = kMostPlaces / static_cast<int>(kListThreads);
constexpr unsigned kLong = 64;  // places: of more, a comparison of each with each takes longer than sorting

struct ListsShared {
  unsigned ends[kMostSlices];  // of the lists, which lie one behind another; before that sizes, then where they begin
  uint16_t places[kMostPlaces];
  uint16_t long_slices[kMostPlaces / kLong];
  unsigned longs, of_warps[kListThreads / cuda::kWarp];

  __device__ unsigned begin(int slice) const { return slice > 0 ? ends[slice - 1] : 0; }
  __device__ unsigned size(int slice) const { return ends[slice] - begin(slice); }
};

// The sum of v over the lanes up to this one, and over the threads of the block before this one.
__device__ unsigned sum_of_lanes(unsigned v) {
  const unsigned lane = threadIdx.x % cuda::kWarp;
  for (unsigned distance = 1; distance < cuda::kWarp; distance *= 2) {
    const unsigned before = __shfl_sync(cuda::kAllLanes, v, lane - distance);
    if (lane >= distance) v += before;
  }
  return v;
}
__device__ unsigned sum_before(unsigned v, unsigned* of_warps) {
  static_assert(kListThreads == cuda::kWarp * cuda::kWarp, "a lane for each warp");
  const unsigned lane = threadIdx.x % cuda::kWarp, warp = threadIdx.x / cuda::kWarp;
  const unsigned of_lanes = sum_of_lanes(v);
  if (lane == cuda::kWarp - 1) of_warps[warp] = of_lanes;
  __syncthreads();
  const unsigned before = __shfl_sync(cuda::kAllLanes, sum_of_lanes(of_warps[lane]), warp - 1);
  return of_lanes - v + (warp > 0 ? before : 0);
}

// A thread has every kListThreads-th place of the index, and keeps what it holds. Which of a list's places lies where
// is up to the atomics, until each place goes behind those of its list that come before it.
__global__ void __launch_bounds__(kListThreads) index_lists_kernel(const ListArgs a) {
  auto& s = cuda::shared<ListsShared>();
  const int slices = static_cast<int>(a.slices), thread = static_cast<int>(threadIdx.x);
  constexpr int kStep = kListThreads, kNone = -1;
  int slice_of[kOfThread];
#pragma unroll
  for (int j = 0; j < kOfThread; ++j) {
    const int64_t i = thread + j * kStep, slice = i < a.n ? a.index[i] : kNone;
    slice_of[j] = is_inside(a, slice) ? static_cast<int>(slice) : kNone;
    if (i < a.n && slice_of[j] == kNone) cuda::report(a.fault, a.sentence, i, slice, a.slices);
  }
  for (int k = thread; k < slices; k += kStep) s.ends[k] = 0;
  if (thread == 0) s.longs = 0;
  const auto each_place = [&](const auto& body) {  // body(place, slice, number of the place among the thread's)
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      if (slice_of[j] != kNone) body(static_cast<unsigned>(thread + j * kStep), slice_of[j], j);
    }
  };
  __syncthreads();
  each_place([&](unsigned, int slice, int) { atomicAdd(&s.ends[slice], 1u); });
  __syncthreads();

  constexpr int kNeighbours = kMostSlices / kStep;
  const int first = thread * kNeighbours, last = first + kNeighbours < slices ? first + kNeighbours : slices;
  unsigned sum = 0;
  for (int k = first; k < last; ++k) sum += s.ends[k];
  unsigned begin = sum_before(sum, s.of_warps);
  for (int k = first; k < last; ++k) {
    const unsigned size = s.ends[k];
    s.ends[k] = begin;
    begin += size;
  }
  __syncthreads();
  each_place([&](unsigned i, int slice, int) { s.places[atomicAdd(&s.ends[slice], 1u)] = static_cast<uint16_t>(i); });
  __syncthreads();

  for (int k = thread; k < slices; k += kStep) {
    a.begins[k] = s.begin(k);
    a.sizes[k] = s.size(k);
    if (s.size(k) > kLong) s.long_slices[atomicAdd(&s.longs, 1u)] = static_cast<uint16_t>(k);
  }
  unsigned to[kOfThread] = {};
  each_place([&](unsigned i, int slice, int j) {
    to[j] = s.begin(slice);
    if (s.size(slice) > kLong) return;
    for (unsigned k = s.begin(slice); k < s.ends[slice]; ++k) to[j] += s.places[k] < i ? 1 : 0;
  });
  __syncthreads();
  each_place([&](unsigned i, int slice, int j) {
    if (s.size(slice) <= kLong) s.places[to[j]] = static_cast<uint16_t>(i);
  });
  __syncthreads();
  for (unsigned k = 0; k < s.longs; ++k) {
    const int slice = s.long_slices[k];
    sort_by_block(s.places + s.begin(slice), s.size(slice));
  }
  const int all = static_cast<int>(s.begin(slices));
  for (int k = thread; k < all; k += kStep) a.places[k] = s.places[k];
}

void launch_lists(const cuda::Queue& q, const ListArgs& a, bool is_of_block) {
  if (is_of_block) return q.launch<index_lists_kernel>(cuda::Grid{{1}, {kListThreads}}, a);
  const cuda::Grid over_slices = cuda::grid_over(q.runtime(), a.slices, kThreads);
  const cuda::Grid over_index = cuda::grid_over(q.runtime(), a.n, kThreads);
  q.launch<index_clear_kernel>(over_slices, a);
  q.launch<index_count_kernel>(over_index, a);
  q.launch<index_place_kernel>(over_slices, a);
  q.launch<index_fill_kernel>(over_index, a);
  q.launch<index_sort_kernel>(over_slices, a);
}

// ---- Adding what the lists name.

template <class T>
struct AddArgs {
  const T* dy;
  T* dx;
  Split of_dx;              // into threads
  int64_t n, width, count;  // slices of dy; pieces of a slice; threads
  const Count *sizes, *begins, *places;
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
    const Count* const places = a.places + a.begins[slice];
    const auto size = static_cast<int64_t>(a.sizes[slice]);
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
  ListArgs lists{};
  lists.slices = x.extent;
  lists.n = n;
  lists.fault = runtime_of(device).fault();
  lists.sentence = cuda::sentence_of(IndexAdd::kBadIndex);
  AddArgs<T> add{};
  add.n = n;
  add.width = x.inner / kEach;
  constexpr int64_t kOfWarp = kPieces * cuda::kWarp;
  const int64_t threads = kPieces == 1 ? add.width : (add.width + kOfWarp - 1) / kOfWarp * cuda::kWarp;
  add.of_dx = Split(x.extent, threads);
  add.count = x.outer * x.extent * threads;
  const bool is_of_block = x.extent <= kMostSlices && n <= kMostPlaces;
  auto kernel = cuda::own("plumb:index_add", device, is_of_block ? 2 : 6, [=](const cuda::Queue& q, const Launch& l) {
    ListArgs of = lists;
    of.index = static_cast<const int64_t*>(l.in[1]);
    of.sizes = static_cast<Count*>(l.workspace);
    of.begins = of.sizes + of.slices;
    of.filled = of.begins + of.slices;
    of.places = of.filled + of.slices;
    of.taken = of.places + of.n;
    launch_lists(q, of, is_of_block);
    AddArgs<T> now = add;
    now.dy = static_cast<const T*>(l.in[0]);
    now.dx = static_cast<T*>(l.out[0]);
    now.sizes = of.sizes;
    now.begins = of.begins;
    now.places = of.places;
    q.launch<index_add_kernel<T, kEach, kPieces>>(cuda::grid_over(q.runtime(), now.count, kThreads), now);
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
      if (x.inner % kEach != 0) return add_kernel<T, 1, 1>(x, n, device);
      const bool is_long = x.inner / kEach > cuda::kWarp;  // a slice, for a warp
      return is_long ? add_kernel<T, kEach, 2>(x, n, device) : add_kernel<T, kEach, 1>(x, n, device);
    });
  });
}

}  // namespace plumb
