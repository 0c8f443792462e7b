#include "kernels/cpu/wrappers/relu_epilogue.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/functors/unary.h"

namespace plumb::cpu {

std::unique_ptr<Kernel> relu_epilogue(std::unique_ptr<Kernel> kernel, const TensorSpec& y) {
  std::unique_ptr<Kernel> both;
  if (!kernel) return both;
  dispatch_compute(y.dtype, [&]<class T>() {
    both = wrap_kernel(std::move(kernel), "", "+relu", [n = y.numel()](const Kernel& inner, const Launch& l) {
      inner.run(l);
      auto* to = static_cast<T*>(l.out[0]);
      parallel_for(n, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) store(to + i, functors::Relu().forward(load(to + i)));
      });
    });
  });
  return both;
}

}  // namespace plumb::cpu
