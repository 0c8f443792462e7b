#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce_plan.h"
#include "kernels/reduce.h"

namespace plumb::cpu {
namespace {

class ArgmaxOffsets {  // offsets of the reduced elements in row-major order of their logical dimensions
 public:
  ArgmaxOffsets(const TensorSpec& x, uint32_t dims) {
    const Strides strides = strides_of(x);
    for (int d = x.rank() - 1; d >= 0; --d) {
      if (!(dims >> d & 1) || x.shape[d] == 1) continue;
      if (!axes_.empty() && strides[d] == axes_.back().x_stride * axes_.back().extent) {
        axes_.back().extent *= x.shape[d];
      } else {
        axes_.push_back({x.shape[d], strides[d], 0});
      }
    }
  }
  int64_t operator()(int64_t i) const {
    return axes_.size() == 1 ? i * axes_[0].x_stride : offset_of(axes_, i, &Axis::x_stride);
  }

 private:
  std::vector<Axis> axes_;
};

template <class T>
class ArgmaxKernel final : public Kernel {
 public:
  ArgmaxKernel(const TensorSpec& x, ReducePlan plan, uint32_t dims)
      : Kernel("plumb:argmax"), plan_(std::move(plan)), offset_(x, dims) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<int64_t*>(l.out[0]);
    parallel_for(plan_.outputs, std::max<int64_t>(1, 16384 / std::max<int64_t>(plan_.terms, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     const T* from = x + offset_of(plan_.kept, o, &Axis::x_stride);
                     int64_t best = 0;
                     auto largest = load(from);
                     for (int64_t i = 1; i < plan_.terms && largest == largest; ++i) {
                       const auto v = load(from + offset_(i));
                       if (v > largest || v != v) {
                         largest = v;
                         best = i;
                       }
                     }
                     y[offset_of(plan_.kept, o, &Axis::y_stride)] = best;
                   }
                 });
  }

 private:
  ReducePlan plan_;
  ArgmaxOffsets offset_;
};

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Argmax::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& x = p.in[0];
  const cpu::ReducePlan plan(x, p.out[0], p.params.dims);
  const auto add = [&]<class T>() {
    candidates.add("loop", [=, dims = p.params.dims] { return std::make_unique<cpu::ArgmaxKernel<T>>(x, plan, dims); });
  };
  if (!cpu::dispatch_compute(x.dtype, add)) {
    if (x.dtype == DType::kI32) add.template operator()<int32_t>();
    if (x.dtype == DType::kI64) add.template operator()<int64_t>();
    if (x.dtype == DType::kU8) add.template operator()<uint8_t>();
  }
}

}  // namespace plumb
