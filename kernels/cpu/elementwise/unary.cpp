#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/onednn.h"

namespace plumb::cpu {

using detail::Stage;
namespace {

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  using Op = detail::UnaryStage<F, S>;
  const Op op{*static_cast<const F*>(f)};
  dispatch_compute(p.out[0].dtype, [&]<class T>() {
    offer_in_order(c, {loop_of(row_function<Op, T>(op), p), dnnl_unary(F::kName, F::kKeeps, S, p, f)});
  });
}

}  // namespace

}  // namespace plumb::cpu

namespace plumb::detail {

void offer_unary_cpu(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  size_t i = 0;
  UnaryFunctors::for_each([&]<class F>() {
    if (i++ != functor) return;
    if (stage == Stage::kForward) return cpu::offer<F, Stage::kForward>(p, f, c);
    if (stage == Stage::kBackward) return cpu::offer<F, Stage::kBackward>(p, f, c);
    cpu::offer<F, Stage::kSecond>(p, f, c);
  });
}

}  // namespace plumb::detail
