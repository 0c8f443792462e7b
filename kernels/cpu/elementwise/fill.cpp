#include "kernels/fill.h"

#include <algorithm>

#include "kernels/cpu/movement/convert.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb {
namespace {

template <class T>
std::unique_ptr<Kernel> fill_kernel(T value, int64_t n) {
  return make_kernel("plumb:fill", [=](const Launch& l) {
    cpu::parallel_write(static_cast<T*>(l.out[0]), n,
                        [&](int64_t begin, int64_t end, T* to) { std::fill_n(to, end - begin, value); });
  });
}

}  // namespace

void Fill::cpu(const Problem<Params>& p, Candidates& candidates) {
  dispatch_dtype(p.out[0].dtype, [&]<class T>() {
    const auto value = cpu::convert<T>(static_cast<double>(p.params.value));
    candidates.add("loop", [=, n = p.out[0].numel()] { return fill_kernel(value, n); });
  });
}

}  // namespace plumb
