#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/onednn.h"

namespace plumb::cpu {

using detail::Stage;
namespace {

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  using Op = detail::BinaryStage<F, S>;
  const Op op{*static_cast<const F*>(f)};
  const auto add = [&]<class T>() {
    offer_in_order(c, {loop_of(row_function<Op, T>(op), p), dnnl_binary(F::kName, S, p)});
  };
  if constexpr (S == Stage::kForward) {
    detail::dispatch_numbers(p.out[0].dtype, add);
  } else {
    dispatch_compute(p.out[0].dtype, add);
  }
}

}  // namespace

}  // namespace plumb::cpu

namespace plumb::detail {

void offer_binary_cpu(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  BinaryFunctors::visit(functor,
                        [&]<class F>() { visit_binary(stage, [&]<Stage S>() { cpu::offer<F, S>(p, f, c); }); });
}

}  // namespace plumb::detail
