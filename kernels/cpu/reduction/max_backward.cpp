#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/reduce_plan.h"
#include "kernels/reduce.h"

namespace plumb::cpu {
namespace {

template <class T>
class MaxBackwardKernel final : public Kernel {
 public:
  MaxBackwardKernel(const TensorSpec& x, const TensorSpec& y, uint32_t dims)
      : Kernel("plumb:max_backward"), plan_(x, y, dims) {}
  void run(const Launch& l) const override {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]),
               *y = static_cast<const T*>(l.in[2]);
    auto* dx = static_cast<T*>(l.out[0]);
    parallel_for(plan_.outputs, std::max<int64_t>(1, 8192 / std::max<int64_t>(plan_.terms, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     const int64_t from = offset_of(plan_.kept, o, &Axis::x_stride),
                                   to = offset_of(plan_.kept, o, &Axis::y_stride);
                     const auto largest = load(y + to);
                     const auto is_max = [&](Compute<T> v) { return v == largest || (v != v && largest != largest); };
                     int64_t equals = 0;
                     for (int64_t i = 0; i < plan_.terms; ++i) {
                       equals += is_max(load(x + from + offset_of(plan_.reduced, i, &Axis::x_stride)));
                     }
                     const auto share = load(dy + to) / static_cast<Compute<T>>(std::max<int64_t>(equals, 1));
                     for (int64_t i = 0; i < plan_.terms; ++i) {
                       const int64_t at = from + offset_of(plan_.reduced, i, &Axis::x_stride);
                       store(dx + at, is_max(load(x + at)) ? share : Compute<T>(0));
                     }
                   }
                 });
  }

 private:
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
    candidates.add("loop", [=] { return std::make_unique<cpu::MaxBackwardKernel<T>>(x, y, dims); });
  });
}

}  // namespace plumb
