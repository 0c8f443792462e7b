#include "kernels/cast.h"

#include "kernels/cpu/movement/convert.h"
#include "kernels/cpu/movement/reorder.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb {
namespace {

template <class To, class From>
std::unique_ptr<Kernel> cast_kernel(int64_t n) {
  return make_kernel("plumb:cast", [n](const Launch& l) {
    const auto* x = static_cast<const From*>(l.in[0]);
    const cpu::Source source{x, static_cast<double>(sizeof(From)) / sizeof(To)};
    cpu::parallel_write(static_cast<To*>(l.out[0]), n, {&source, 1}, [x](int64_t begin, int64_t end, To* to) {
      const From* from = x + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < end - begin; ++i) to[i] = cpu::convert<To>(from[i]);
    });
  });
}

}  // namespace

void Cast::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  dispatch_dtype(x.dtype, [&]<class From>() {
    dispatch_dtype(y.dtype, [&]<class To>() {
      const auto make = [n = y.numel()] { return cast_kernel<To, From>(n); };
      cpu::offer_in_order(candidates, {{"loop", Provider::kPlumbline, make}, cpu::reorder_offer(x, strides_of(x), y)});
    });
  });
}

}  // namespace plumb
