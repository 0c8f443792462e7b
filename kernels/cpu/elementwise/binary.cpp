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
