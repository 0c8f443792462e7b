#include "kernels/cuda/elementwise/elementwise.cuh"

namespace plumb::detail {
namespace {

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  using Op = BinaryStage<F, S>;
  const Op op{*static_cast<const F*>(f)};
  const auto add = [&]<class T>() { cuda::add_candidate<Op, T>(op, p, c); };
  if constexpr (S == Stage::kForward) {
    dispatch_numbers(p.out[0].dtype, add);
  } else {
    dispatch_compute(p.out[0].dtype, add);
  }
}

}  // namespace

void offer_binary_cuda(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  BinaryFunctors::visit(functor, [&]<class F>() { visit_binary(stage, [&]<Stage S>() { offer<F, S>(p, f, c); }); });
}

}  // namespace plumb::detail
