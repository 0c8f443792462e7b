#include "kernels/cuda/element.h"
#include "kernels/cuda/reduction/fold.cuh"
#include "kernels/reduce.h"

namespace plumb {
namespace {

template <class V>
struct Found {
  V value;
  int64_t at;  // in the line, or -1: nothing yet
};

template <class T>
struct ArgmaxFold {
  using V = cuda::Compute<T>;
  using State = Found<V>;
  const T* x;
  int64_t* y;
  cuda::Steps logical;  // of the terms, as their numbers count; rank 0 where memory is in that order

  __device__ State start(int64_t) const { return {V(0), -1}; }
  __device__ void add(State& s, V v, int64_t i) const {
    int64_t number = i;
    if (logical.rank > 0) number = logical.of_x(i);
    s = merge(s, {v, number});
  }
  // The one with more; of equals, the first. NaN is more than any number.
  __device__ State merge(const State& a, const State& b) const {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool are_equal = a.value == b.value || (a_nan && b_nan);
    const bool takes_a = are_equal ? a.at < b.at : a_nan || (!b_nan && a.value > b.value);
    return takes_a ? a : b;
  }
  __device__ State from_lane(const State& s, int distance) const {
    const V value = __shfl_xor_sync(cuda::kAllLanes, s.value, distance);
    return {value, static_cast<int64_t>(__shfl_xor_sync(cuda::kAllLanes, static_cast<long long>(s.at), distance))};
  }
  __device__ void finish(const State& s, int64_t at) const { cuda::put(y + at, s.at); }
};

// Where terms are met in another order than the row-major one, what each adds to its number there.
cuda::Steps logical_numbers(const TensorSpec& x, uint32_t dims) {
  cuda::Steps steps;
  int64_t number_of[kMaxRank] = {}, next = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (!(dims >> d & 1)) continue;
    number_of[d] = next;
    next *= x.shape[d];
  }
  const DimOrder order = memory_order(x.layout, x.rank());
  for (int i = x.rank() - 1; i >= 0; --i) {
    if (dims >> order[i] & 1) steps.add(x.shape[order[i]], number_of[order[i]], 0);
  }
  if (steps.rank == 1 && steps.x[0] == 1) steps.rank = 0;
  return steps;
}

}  // namespace

void Argmax::cuda(const Problem<Params>& p, Candidates& candidates) {
  detail::dispatch_numbers(p.in[0].dtype, [&]<class T>() {
    candidates.add("rows", [x = p.in[0], y = p.out[0], dims = p.params.dims, device = p.device] {
      const ArgmaxFold<T> fold{nullptr, nullptr, logical_numbers(x, dims)};
      return cuda::fold_kernel("plumb:argmax", device, cuda::Lines(x, y, dims), fold);
    });
  });
}

}  // namespace plumb
