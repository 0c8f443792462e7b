#include "kernels/cuda/elementwise/elementwise.cuh"

namespace plumb::detail {
namespace {

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  using Op = UnaryStage<F, S>;
  const Op op{*static_cast<const F*>(f)};
  cuda::dispatch_compute(p.out[0].dtype, [&]<class T>() { cuda::add_candidate<Op, T>(op, p, c); });
}

}  // namespace

void offer_unary_cuda(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  UnaryFunctors::visit(functor, [&]<class F>() { visit_unary(stage, [&]<Stage S>() { offer<F, S>(p, f, c); }); });
}

}  // namespace plumb::detail
