#include "kernels/cpu/elementwise.h"

namespace plumb::cpu {

using detail::Stage;
namespace {

// What each stage computes, as a function of its operands in the compute type.
template <class F, Stage S>
struct UnaryStage {
  static constexpr size_t kInputs = S == Stage::kForward ? 1 : (S == Stage::kBackward ? 2 : 3);
  static constexpr bool kBroadcasts = false, kRare = detail::is_second(S);
  [[no_unique_address]] F f;  // keeps attribute-free functors empty
  template <class C>
  C operator()(const std::array<C, kInputs>& in) const {
    if constexpr (S == Stage::kForward) {
      return f.forward(in[0]);
    } else if constexpr (S == Stage::kBackward) {
      return f.backward(in[0], in[1]);
    } else {
      return in[0] * f.backward(functors::Dual<C>(in[1]), functors::Dual<C>(in[2], C(1))).d;
    }
  }
};

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  const UnaryStage<F, S> op{*static_cast<const F*>(f)};
  dispatch_compute(p.out[0].dtype, [&]<class T>() { add_candidate(row_function<UnaryStage<F, S>, T>(op), p, c); });
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
