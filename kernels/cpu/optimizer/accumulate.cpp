#include "kernels/accumulate.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/functors/unary.h"

namespace plumb {
namespace {

template <class T, bool kIsRelu>
std::unique_ptr<Kernel> accumulate_kernel(int64_t n) {
  auto kernel = make_kernel(kIsRelu ? "plumb:accumulate_relu" : "plumb:accumulate", [n](const Launch& l) {
    auto* to = static_cast<T*>(l.in[0]);
    const auto* from = static_cast<const T*>(l.in[1]);
    const auto* y = kIsRelu ? static_cast<const T*>(l.in[2]) : nullptr;
    cpu::parallel_for(n, cpu::kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const auto sum = cpu::load(to + i) + cpu::load(from + i);
        cpu::store(to + i, kIsRelu ? functors::Relu().backward(sum, cpu::load(y + i)) : sum);
      }
    });
  });
  kernel->info().bytes = static_cast<double>(n) * sizeof(T);  // bytes written; the gate adds those read
  return kernel;
}

}  // namespace

void Accumulate::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  PLUMB_CHECK(p.in[0] == p.in[1], "grad: gradients {} and {} of one tensor differ", p.in[0], p.in[1]);
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [n = p.in[0].numel(), is_relu = p.in.size() == 3] {
      return is_relu ? accumulate_kernel<T, true>(n) : accumulate_kernel<T, false>(n);
    });
  });
}

}  // namespace plumb
