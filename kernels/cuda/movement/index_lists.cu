// One block makes the lists if they fit its shared memory, for every further launch takes longer than it works.
#include "kernels/cuda/movement/index_lists.h"

#include "kernels/cuda/element.h"

namespace plumb {
namespace {

using cuda::Count;

constexpr unsigned kThreads = 256;

struct ListArgs {
  const int64_t* index;
  Count *sizes, *begins, *filled, *places;
  Count* taken;  // of places
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

}  // namespace

namespace cuda {

IndexLists::IndexLists(Runtime& r, int64_t slices, int64_t n, uint64_t sentence)
    : slices_(slices), n_(n), fault_(r.fault()), sentence_(sentence) {
  is_of_block_ = slices <= kMostSlices && n <= kMostPlaces;
}

size_t IndexLists::workspace_bytes() const { return static_cast<size_t>(3 * slices_ + n_ + 1) * sizeof(Count); }

ListsOfSlices IndexLists::launch(const Queue& q, const int64_t* index, void* workspace) const {
  ListArgs a{};
  a.index = index;
  a.sizes = static_cast<Count*>(workspace);
  a.begins = a.sizes + slices_;
  a.filled = a.begins + slices_;
  a.places = a.filled + slices_;
  a.taken = a.places + n_;
  a.slices = slices_;
  a.n = n_;
  a.fault = fault_;
  a.sentence = sentence_;
  if (is_of_block_) {
    q.launch<index_lists_kernel>(Grid{{1}, {kListThreads}}, a);
  } else {
    const Grid over_slices = grid_over(q.runtime(), slices_, kThreads),
               over_index = grid_over(q.runtime(), n_, kThreads);
    q.launch<index_clear_kernel>(over_slices, a);
    q.launch<index_count_kernel>(over_index, a);
    q.launch<index_place_kernel>(over_slices, a);
    q.launch<index_fill_kernel>(over_index, a);
    q.launch<index_sort_kernel>(over_slices, a);
  }
  return {a.sizes, a.begins, a.places};
}

}  // namespace cuda
}  // namespace plumb
