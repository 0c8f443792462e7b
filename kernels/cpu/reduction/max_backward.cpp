#include <atomic>

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/reduce_plan.h"
#include "kernels/cpu/reduction/simd_reduce.h"
#include "kernels/reduce.h"

namespace plumb::cpu {
namespace {

// Without a branch, so that loops over it become vectors. All NaNs are alike.
template <class C>
bool is_max(C v, C largest) {
  return (v == largest) | ((v != v) & (largest != largest));
}

template <class T>
class MaxBackwardKernel final : public Kernel {
 public:
  explicit MaxBackwardKernel(ReducePlan plan) : Kernel("plumb:max_backward"), plan_(std::move(plan)) {
    info().name += plan_.inner_reduced ? ":rows" : ":columns";
  }
  void run(const Launch& l) const override {
    const Arrays a{static_cast<const T*>(l.in[0]), static_cast<const T*>(l.in[1]), static_cast<const T*>(l.in[2]),
                   static_cast<T*>(l.out[0])};
    if (plan_.inner_reduced && plan_.outputs == 1 && plan_.reduced.size() == 1) return all(a);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(plan_.terms, 1));
    parallel_for(plan_.outputs, grain, [&](int64_t begin, int64_t end) {
      if (plan_.inner_reduced) {
        rows(begin, end, a);
      } else if (plan_.terms <= kMost) {
        columns<Count>(begin, end, a);
      } else {
        columns<int64_t>(begin, end, a);
      }
    });
  }

 private:
  using C = Compute<T>;
  using Count = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;  // as wide as what is compared
  static constexpr int64_t kGrain = 16384;
  struct Arrays {
    const T *dy, *x, *y;
    T* dx;
  };

  static constexpr int64_t kMost = int64_t{1} << 30;  // which a Count holds
  static int64_t count(const T* x, int64_t n, C largest) {
    int64_t total = 0;
    for (int64_t begin = 0; begin < n; begin += kMost) {
      Count equals = 0;
      for (int64_t i = begin; i < std::min(n, begin + kMost); ++i) equals += is_max(load(x + i), largest);
      total += equals;
    }
    return total;
  }
  static C share_of(const T* dy, int64_t equals) { return load(dy) / static_cast<C>(std::max<int64_t>(equals, 1)); }
  static void write(const T* x, T* dx, int64_t n, C largest, C share) {
    for (int64_t i = 0; i < n; ++i) store(dx + i, is_max(load(x + i), largest) ? share : C(0));
  }

  // One maximum of neighbours: all threads look for it.
  void all(const Arrays& a) const {
    const C largest = load(a.y);
    std::atomic<int64_t> equals = 0;
    parallel_for(plan_.terms, kGrain, [&](int64_t i, int64_t end) { equals += count(a.x + i, end - i, largest); });
    const C share = share_of(a.dy, equals);
    parallel_for(plan_.terms, kGrain,
                 [&](int64_t i, int64_t end) { write(a.x + i, a.dx + i, end - i, largest, share); });
  }

  // The outputs [begin, end), each of runs of neighbours.
  void rows(int64_t begin, int64_t end, const Arrays& a) const {
    const int64_t run = plan_.reduced[0].extent, runs = run ? plan_.terms / run : 0;
    const std::span<const Axis> outer(plan_.reduced.data() + 1, plan_.reduced.size() - 1);
    for (int64_t o = begin; o < end; ++o) {
      const int64_t from = offset_of(plan_.kept, o, &Axis::x_stride), to = offset_of(plan_.kept, o, &Axis::y_stride);
      const auto at = [&](int64_t r) { return from + offset_of(outer, r, &Axis::x_stride); };
      const C largest = load(a.y + to);
      int64_t equals = 0;
      for (int64_t r = 0; r < runs; ++r) equals += count(a.x + at(r), run, largest);
      const C share = share_of(a.dy + to, equals);
      for (int64_t r = 0; r < runs; ++r) write(a.x + at(r), a.dx + at(r), run, largest, share);
    }
  }

  // The same where outputs are neighbours: up to kColumns together. An N counts as many as there are terms.
  template <class N>
  void columns(int64_t begin, int64_t end, const Arrays& a) const {
    const Axis& inner = plan_.kept[0];
    for (int64_t o = begin, n; o < end; o += n) {
      n = std::min({kColumns, end - o, inner.extent - o % inner.extent});
      const int64_t from = offset_of(plan_.kept, o, &Axis::x_stride), to = offset_of(plan_.kept, o, &Axis::y_stride);
      const auto at = [&](int64_t k) { return from + offset_of(plan_.reduced, k, &Axis::x_stride); };
      C largest[kColumns], share[kColumns];
      N equals[kColumns] = {};
      for (int64_t j = 0; j < n; ++j) largest[j] = load(a.y + to + j * inner.y_stride);
      for (int64_t k = 0; k < plan_.terms; ++k) {
        const T* const row = a.x + at(k);
        for (int64_t j = 0; j < n; ++j) equals[j] += is_max(load(row + j), largest[j]);
      }
      for (int64_t j = 0; j < n; ++j) share[j] = share_of(a.dy + to + j * inner.y_stride, equals[j]);
      for (int64_t k = 0; k < plan_.terms; ++k) {
        const T* const row = a.x + at(k);
        T* const result = a.dx + at(k);
        for (int64_t j = 0; j < n; ++j) store(result + j, is_max(load(row + j), largest[j]) ? share[j] : C(0));
      }
    }
  }

  ReducePlan plan_;
};

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void MaxBackward::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[1], &y = p.in[2];
  uint32_t dims = 0;
  for (int d = 0; d < x.rank(); ++d) dims |= y.shape[d] == 1 && x.shape[d] != 1 ? 1u << d : 0u;
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop", [=] { return std::make_unique<cpu::MaxBackwardKernel<T>>(cpu::ReducePlan(x, y, dims)); });
  });
}

}  // namespace plumb
