// The gate: every kernel runs through it. It finds the prepared kernel, makes the outputs, and runs or records.
#pragma once

#include <array>

#include "../core/tensor.h"
#include "kernel_cache.h"

namespace plumb {

/// The inputs that a kernel writes: `count` of them, starting at `first`. Their versions are raised.
struct Writes {
  uint32_t first = 0, count = 0;
};

namespace detail {
/// An input borrowed from a tensor.
struct Input : In {
  Input(const Tensor& t) : In{t.value.get()} {}
};

void dispatch(const KernelKind& kind, const void* params, Inputs in, std::span<const TensorSpec> specs, Ref<Value>* y,
              Writes writes);
/// Runs a prepared kernel now, with this thread's workspace, and tells the observer.
void run_now(PreparedKernel& p, void* const* in, void* const* out);
inline Inputs inputs(std::initializer_list<Input> in) {
  static_assert(sizeof(Input) == sizeof(In));
  return {static_cast<const In*>(in.begin()), in.size()};
}
}  // namespace detail

/// Runs kind K on the inputs and returns its one output.
template <class K>
Tensor run(const typename K::Params& params, std::initializer_list<detail::Input> in, const TensorSpec& out,
           Writes writes = {}) {
  detail::Ref<detail::Value> y;
  detail::dispatch(detail::kind_of<K>, &params, detail::inputs(in), {&out, 1}, &y, writes);
  return Tensor(std::move(y));
}

/// The same if the number of inputs is known only at run time.
template <class K>
Tensor run(const typename K::Params& params, detail::Inputs in, const TensorSpec& out) {
  detail::Ref<detail::Value> y;
  detail::dispatch(detail::kind_of<K>, &params, in, {&out, 1}, &y, {});
  return Tensor(std::move(y));
}

/// The same for several outputs; `writes` names the inputs that the kernel writes.
template <class K, size_t N>
std::array<Tensor, N> run(const typename K::Params& params, std::initializer_list<detail::Input> in,
                          const TensorSpec (&out)[N], Writes writes = {}) {
  std::array<detail::Ref<detail::Value>, N> y;
  detail::dispatch(detail::kind_of<K>, &params, detail::inputs(in), out, y.data(), writes);
  std::array<Tensor, N> tensors;
  for (size_t i = 0; i < N; ++i) tensors[i].value = std::move(y[i]);
  return tensors;
}

/// Runs kind K only for what it writes to its inputs: optimizers, accumulation.
template <class K>
void update(const typename K::Params& params, detail::Inputs in, Writes writes) {
  detail::dispatch(detail::kind_of<K>, &params, in, {}, nullptr, writes);
}
template <class K>
void update(const typename K::Params& params, std::initializer_list<detail::Input> in, Writes writes) {
  update<K>(params, detail::inputs(in), writes);
}

}  // namespace plumb
