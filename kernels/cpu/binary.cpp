#include "kernels/cpu/elementwise.h"

namespace plumb::cpu {

using detail::Stage;
namespace {

// What each stage computes, as a function of its operands in the compute type.
template <class F, Stage S>
struct BinaryStage {
  static constexpr size_t kInputs = S == Stage::kForward ? 2 : (detail::is_second(S) ? 4 : 3);
  static constexpr bool kBroadcasts = true, kRare = detail::is_second(S);
  [[no_unique_address]] F f;  // keeps attribute-free functors empty
  template <class C>
  C operator()(const std::array<C, kInputs>& in) const {
    if constexpr (S == Stage::kForward) {
      return f.forward(in[0], in[1]);
    } else if constexpr (S == Stage::kBackward) {
      return f.backward_a(in[0], in[1], in[2]);
    } else if constexpr (S == Stage::kBackwardB) {
      return f.backward_b(in[0], in[1], in[2]);
    } else {
      constexpr bool by_a = S == Stage::kSecond || S == Stage::kSecondBA;
      const functors::Dual<C> dy(in[1]), a(in[2], C(by_a ? 1 : 0)), b(in[3], C(by_a ? 0 : 1));
      if constexpr (S == Stage::kSecond || S == Stage::kSecondAB) {
        return in[0] * f.backward_a(dy, a, b).d;
      } else {
        return in[0] * f.backward_b(dy, a, b).d;
      }
    }
  }
};

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  using Op = BinaryStage<F, S>;
  const Op op{*static_cast<const F*>(f)};
  const auto add = [&]<class T>() { add_candidate(row_function<Op, T>(op), p, c); };
  const DType t = p.out[0].dtype;
  if (dispatch_compute(t, add)) return;
  if constexpr (S == Stage::kForward) {
    if (t == DType::kI32) add.template operator()<int32_t>();
    if (t == DType::kI64) add.template operator()<int64_t>();
    if (t == DType::kU8) add.template operator()<uint8_t>();
  }
}

}  // namespace

}  // namespace plumb::cpu

namespace plumb::detail {

void offer_binary_cpu(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  size_t i = 0;
  BinaryFunctors::for_each([&]<class F>() {
    if (i++ != functor) return;
    switch (stage) {
      case Stage::kForward: return cpu::offer<F, Stage::kForward>(p, f, c);
      case Stage::kBackward: return cpu::offer<F, Stage::kBackward>(p, f, c);
      case Stage::kBackwardB: return cpu::offer<F, Stage::kBackwardB>(p, f, c);
      case Stage::kSecond: return cpu::offer<F, Stage::kSecond>(p, f, c);
      case Stage::kSecondAB: return cpu::offer<F, Stage::kSecondAB>(p, f, c);
      case Stage::kSecondBA: return cpu::offer<F, Stage::kSecondBA>(p, f, c);
      case Stage::kSecondBB: return cpu::offer<F, Stage::kSecondBB>(p, f, c);
    }
  });
}

}  // namespace plumb::detail
