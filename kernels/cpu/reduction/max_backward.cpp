#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/reduce_plan.h"
#include "kernels/reduce.h"

namespace plumb::cpu {
namespace {

template <class T>
std::unique_ptr<Kernel> max_backward(const ReducePlan& plan) {
  return make_kernel("plumb:max_backward", [plan](const Launch& l) {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]),
               *y = static_cast<const T*>(l.in[2]);
    auto* dx = static_cast<T*>(l.out[0]);
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(plan.terms, 1));
    parallel_for(plan.outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const int64_t from = offset_of(plan.kept, o, &Axis::x_stride), to = offset_of(plan.kept, o, &Axis::y_stride);
        const auto largest = load(y + to);
        const auto is_max = [&](Compute<T> v) { return v == largest || (v != v && largest != largest); };
        const auto at = [&](int64_t i) { return from + offset_of(plan.reduced, i, &Axis::x_stride); };
        int64_t equals = 0;
        for (int64_t i = 0; i < plan.terms; ++i) equals += is_max(load(x + at(i)));
        const auto share = load(dy + to) / static_cast<Compute<T>>(std::max<int64_t>(equals, 1));
        for (int64_t i = 0; i < plan.terms; ++i) store(dx + at(i), is_max(load(x + at(i))) ? share : Compute<T>(0));
      }
    });
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void MaxBackward::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[1], &y = p.in[2];
  uint32_t dims = 0;
  for (int d = 0; d < x.rank(); ++d) dims |= y.shape[d] == 1 && x.shape[d] != 1 ? 1u << d : 0u;
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop", [=] { return cpu::max_backward<T>(cpu::ReducePlan(x, y, dims)); });
  });
}

}  // namespace plumb
