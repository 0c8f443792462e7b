// Activation checkpointing: memory for time.
#pragma once

#include <array>
#include <tuple>

#include "../core/context.h"
#include "../ops/grad.h"

namespace plumb::training {

/// f(x...), for which backward keeps only x and computes f again: less memory is in use, and the gradients have the
/// same bits, unless an x is used several times in f and outside of it too: then its gradients are added in another
/// order. f must make no random choice and write to nothing, since it runs twice. It must get its tensors as arguments:
/// tensors that it captures get no gradients. Throws if a gradient of the gradient is asked for. Source: Chen, Xu,
/// Zhang, Guestrin: Training deep nets with sublinear memory cost (2016).
template <class F, class... T>
Tensor recomputed(F f, const T&... x) {
  constexpr size_t kCount = sizeof...(x);
  const auto gradients = [f, kept = std::array{SavedTensor(x, "recomputed")...}](const Tensor& dy,
                                                                                 const Needs<kCount>& needs) {
    PLUMB_CHECK(!is_recording(), "recomputed: derivatives beyond the first are not available");
    const EnableGrad on;
    const uint64_t since = detail::ctx.sequence;  // what f captures is older, and others' to run through
    std::array<Tensor, kCount> again, dx;
    TensorList wanted;
    for (size_t i = 0; i < kCount; ++i) {
      again[i] = kept[i]().detached();
      if (needs[i]) wanted.push_back(again[i].require_grad());
    }
    const Tensor y = [&] {
      const MemoryScope as_before(MemoryClass::kActivation);  // not a gradient's, in whose scope this runs
      return std::apply(f, again);
    }();
    if (!y.requires_grad()) return dx;  // f uses none of them
    const TensorList found = detail::grad_since(since, y, wanted, dy);
    for (size_t i = 0, next = 0; i < kCount; ++i) {
      if (needs[i]) dx[i] = found[next++];
    }
    return dx;
  };
  const auto forward = [&] {
    const NoGrad off;
    return f(x...);
  };
  return record_joint<kCount>(forward(), {&x...}, gradients, "recomputed");
}

}  // namespace plumb::training
