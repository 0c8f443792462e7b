#include "kernels/cpu/wrappers/relu_epilogue.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/functors/unary.h"

namespace plumb::cpu {
namespace {

template <class T>
class ReluEpilogue final : public WrapperKernel {
 public:
  ReluEpilogue(std::unique_ptr<Kernel> kernel, int64_t n) : WrapperKernel(std::move(kernel), "", "+relu"), n_(n) {}
  void run(const Launch& l) const override {
    inner().run(l);
    auto* y = static_cast<T*>(l.out[0]);
    parallel_for(n_, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) store(y + i, functors::Relu().forward(load(y + i)));
    });
  }

 private:
  int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> relu_epilogue(std::unique_ptr<Kernel> kernel, const TensorSpec& y) {
  std::unique_ptr<Kernel> both;
  if (!kernel) return both;
  dispatch_compute(y.dtype, [&]<class T>() { both = std::make_unique<ReluEpilogue<T>>(std::move(kernel), y.numel()); });
  return both;
}

}  // namespace plumb::cpu
