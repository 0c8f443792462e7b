#include "kernels/cpu/wrappers/relu_epilogue.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/functors/unary.h"

namespace plumb::cpu {
namespace {

template <class T>
class ReluAfterKernel final : public Kernel {
 public:
  ReluAfterKernel(std::unique_ptr<Kernel> kernel, int64_t n)
      : Kernel(kernel->info().name + "+relu"), kernel_(std::move(kernel)), n_(n) {
    std::string name = std::move(info().name);
    info() = kernel_->info();
    info().name = std::move(name);
  }
  void run(const Launch& l) const override {
    kernel_->run(l);
    auto* y = static_cast<T*>(l.out[0]);
    parallel_for(n_, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) store(y + i, functors::Relu().forward(load(y + i)));
    });
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> relu_epilogue(std::unique_ptr<Kernel> kernel, const TensorSpec& y) {
  std::unique_ptr<Kernel> both;
  if (!kernel) return both;
  dispatch_compute(y.dtype,
                   [&]<class T>() { both = std::make_unique<ReluAfterKernel<T>>(std::move(kernel), y.numel()); });
  return both;
}

}  // namespace plumb::cpu
