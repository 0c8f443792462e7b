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
  UnaryFunctors::visit(functor, [&]<class F>() { visit_unary(stage, [&]<Stage S>() { cpu::offer<F, S>(p, f, c); }); });
}

}  // namespace plumb::detail
