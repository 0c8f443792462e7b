// One step of an optimizer over all parameters at once.
//
// Inputs: the learning rate (a number of the weights' dtype), the number of steps done (i64), then for n parameters n
// weights, n of each state and n gradients, each with its parameter's spec. Everything between the rate and the
// gradients is written. Whatever changes between steps is an input, so that a captured step replays correctly. The
// first weights, as many as the attribute `copies` says, have copies in bf16, which precede the gradients and are
// written, too; their gradients are those of the copies.
#pragma once

#include "../dispatch/kernel.h"
#include "functors/optimizer.h"

namespace plumb {

/// Indices of an update's inputs, which come in lists: n weights, n of each state, copies, n gradients.
struct UpdateLists {
  size_t n, states, copies;

  template <class Params>
  UpdateLists(const Problem<Params>& p, size_t states_)
      : n((p.in.size() - 2 - static_cast<size_t>(p.params.copies)) / (2 + states_)),
        states(states_),
        copies(static_cast<size_t>(p.params.copies)) {}
  size_t weight(size_t i) const { return 2 + i; }
  size_t state(size_t k, size_t i) const { return 2 + (1 + k) * n + i; }
  bool has_copy(size_t i) const { return i < copies; }
  size_t copy(size_t i) const { return 2 + n * (1 + states) + i; }
  size_t gradient(size_t i) const { return 2 + n * (1 + states) + copies + i; }
  std::span<const TensorSpec> weights(std::span<const TensorSpec> in) const { return in.subspan(2, n); }
  /// The bytes of the inputs that are written, the number of steps among them.
  double written_bytes(std::span<const TensorSpec> in) const {
    return static_cast<double>(sizeof(int64_t) + bytes_of(in.subspan(2, n * (1 + states) + copies)));
  }
};

/// State: velocity, if there is momentum.
struct SgdUpdate {
  static constexpr char kName[] = "sgd";
  using Params = SgdParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// States: mean, mean_square.
struct AdamUpdate {
  static constexpr char kName[] = "adam";
  using Params = AdamParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// States: mean_square, mean if centered, velocity if there is momentum.
struct RmsPropUpdate {
  static constexpr char kName[] = "rmsprop";
  using Params = RmsPropParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
