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
  size_t i = 0;
  UnaryFunctors::for_each([&]<class F>() {
    if (i++ != functor) return;
    if (stage == Stage::kForward) return offer<F, Stage::kForward>(p, f, c);
    if (stage == Stage::kBackward) return offer<F, Stage::kBackward>(p, f, c);
    offer<F, Stage::kSecond>(p, f, c);
  });
}

}  // namespace plumb::detail
