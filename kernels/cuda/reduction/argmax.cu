#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/reduction/fold_plan.cuh"
#include "kernels/reduce.h"

namespace plumb {
namespace {

template <class V>
struct Found {
  V value;
  int64_t at;  // in the line, or -1: nothing yet
};

// Of terms in the order of their numbers, or (kIsLogical) of those whose numbers count otherwise than memory does.
template <class T, bool kIsLogical>
struct ArgmaxFold {
  using Element = T;
  using V = cuda::Compute<T>;
  using State = Found<V>;
  static constexpr bool kIsAcross = !kIsLogical;
  static constexpr unsigned kBlocks = kIsLogical ? cuda::kFewBlocks : cuda::kLeastBlocks;
  struct Own {
    V value;
    unsigned k;  // of the terms that the thread has
  };
  const T* x;
  int64_t* y;
  cuda::Steps logical;

  __device__ Own begin(int64_t) const {
    using Limits = std::numeric_limits<V>;
    return {Limits::has_infinity ? -Limits::infinity() : Limits::lowest(), 0};
  }
  template <int kEach, class Terms>
  __device__ void add(Own& own, const cuda::Piece<T, kEach>& v, unsigned k, const Terms& terms) const {
    for (int j = 0; j < kEach; ++j) {
      const V value = cuda::wide(v.of[j]);
      bool is_more = !(value <= own.value) && own.value == own.value;  // the first NaN, too
      if constexpr (kIsLogical) is_more = is_more || is_same_before(own, value, k + j, terms);
      own = is_more ? Own{value, k + j} : own;
    }
  }
  // Whether term k, of the same value, has a lower number.
  template <class Terms>
  __device__ bool is_same_before(const Own& own, V value, unsigned k, const Terms& terms) const {
    const bool is_same = value == own.value || (value != value && own.value != own.value);
    return is_same && number(terms, k) < number(terms, own.k);
  }
  template <class Terms>
  __device__ int64_t number(const Terms& terms, unsigned k) const {
    int64_t i = terms.number(k);
    if constexpr (!kIsLogical) return i;
    int64_t at = 0;
#pragma unroll 1
    for (int d = 0; d < logical.rank; ++d) {
      int64_t index = i;
      i = logical.extent[d].divide(index);
      at += index * logical.x[d];
    }
    return at;
  }
  template <class Terms>
  __device__ State end(const Own& own, const Terms& terms, bool has_terms) const {
    return has_terms ? State{own.value, number(terms, own.k)} : State{V(0), -1};
  }
  // The one with more; of equals, the first. NaN is more than any number.
  __device__ bool is_first(const State& a, const State& b) const {
    if (a.at < 0 || b.at < 0) return b.at < 0;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool are_equal = a.value == b.value || (a_nan && b_nan);
    return are_equal ? a.at < b.at : a_nan || (!b_nan && a.value > b.value);
  }
  __device__ State merge(const State& a, const State& b) const { return is_first(a, b) ? a : b; }
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
      const cuda::Lines lines(x, y, dims);
      const cuda::Steps logical = logical_numbers(x, dims);
      if (logical.rank == 0)
        return cuda::fold_kernel("plumb:argmax", device, lines, ArgmaxFold<T, false>{nullptr, nullptr, logical});
      return cuda::fold_kernel("plumb:argmax", device, lines, ArgmaxFold<T, true>{nullptr, nullptr, logical});
    });
  });
}

}  // namespace plumb
