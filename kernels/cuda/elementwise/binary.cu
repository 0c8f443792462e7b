#include "kernels/cuda/elementwise/elementwise.cuh"

namespace plumb::detail {
namespace {

template <class F, Stage S>
void offer(const Problem<NoParams>& p, const void* f, Candidates& c) {
  using Op = BinaryStage<F, S>;
  const Op op{*static_cast<const F*>(f)};
  const auto add = [&]<class T>() { cuda::add_candidate<Op, T>(op, p, c); };
  const DType t = p.out[0].dtype;
  if (cuda::dispatch_compute(t, add)) return;
  if constexpr (S == Stage::kForward) {
    if (t == DType::kI32) add.template operator()<int32_t>();
    if (t == DType::kI64) add.template operator()<int64_t>();
    if (t == DType::kU8) add.template operator()<uint8_t>();
  }
}

}  // namespace

void offer_binary_cuda(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  size_t i = 0;
  BinaryFunctors::for_each([&]<class F>() {
    if (i++ != functor) return;
    switch (stage) {
      case Stage::kForward: return offer<F, Stage::kForward>(p, f, c);
      case Stage::kBackward: return offer<F, Stage::kBackward>(p, f, c);
      case Stage::kBackwardB: return offer<F, Stage::kBackwardB>(p, f, c);
      case Stage::kSecond: return offer<F, Stage::kSecond>(p, f, c);
      case Stage::kSecondAB: return offer<F, Stage::kSecondAB>(p, f, c);
      case Stage::kSecondBA: return offer<F, Stage::kSecondBA>(p, f, c);
      case Stage::kSecondBB: return offer<F, Stage::kSecondBB>(p, f, c);
    }
  });
}

}  // namespace plumb::detail
