// A captured step: the work that one run of a function does, prepared, planned in memory, and replayed.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include "../core/tensor.h"
#include "../dispatch/gate.h"

namespace plumb {

/// What capture learned of a program.
struct ProgramStats {
  int64_t recorded = 0;        ///< kernels that the function ran
  int64_t steps = 0;           ///< of which a run executes this many
  size_t arena_bytes = 0;      ///< memory of all intermediate values together
  size_t unplanned_bytes = 0;  ///< what they would take without sharing memory
  size_t workspace_bytes = 0;
};

class Program;
namespace detail {
Program capture_list(const std::function<TensorList()>& step);
}  // namespace detail

/// The work of a captured step, in order. Every concrete tensor that the function touched is bound by its address and
/// held: inputs are refilled in place, parameters are updated in place. A run allocates nothing, looks nothing up and
/// puts nothing on the tape. One thread runs a program at a time.
class Program {
 public:
  Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Does the work of the captured function once more. Throws on an empty program (default-made, or moved from), and
  /// while the thread captures.
  void run();
  /// What the function returned; filled by run().
  const TensorList& outputs() const;
  const ProgramStats& stats() const;
  /// The kernels of a run, in order.
  std::vector<const PreparedKernel*> kernels() const;

 private:
  struct Impl;
  friend Program detail::capture_list(const std::function<TensorList()>& step);
  std::unique_ptr<Impl> impl_;
};

namespace detail {
// What a captured function may return, as a list.
inline TensorList as_list(TensorList tensors) { return tensors; }
inline TensorList as_list(Tensor t) {
  TensorList one;
  one.push_back(std::move(t));
  return one;
}
template <std::convertible_to<std::span<const Tensor>> Tensors>
TensorList as_list(const Tensors& tensors) {
  const std::span<const Tensor> all(tensors);
  return TensorList(all.begin(), all.end());
}
}  // namespace detail

/// Runs `step` once without doing its work, and returns that work. It returns a tensor, a list of tensors, or nothing.
/// Ops inside give tensors without data: reading one throws. Tensors that exist before are inputs; they are read and
/// written by run(). What no output and no write depends on is left out.
///
/// What `step` does besides ops is done while capturing, and not by run():
///  - numbers and values are frozen: a branch on item(), the seed of uniform, a learning rate that is a C++ number.
///  What
///    is to change from run to run is a tensor that is refilled (copy_from, Optimizer::set_learning_rate);
///  - uniform, normal, Tensor::from and mutable_data throw a sentence: they would write once, for all runs. Dropout
///  draws
///    anew in every run, from its generator's counter;
///  - a handle that is given another tensor (w = w - 0.1 * g) keeps what capture gave it, which has no memory outside
///  of
///    the program: w.copy_from(w - 0.1 * g) writes in every run.
/// Gradients belong inside: grad in `step`, with its results returned or given to an optimizer.
template <class F = std::function<TensorList()>>
requires std::invocable<F&> Program capture(F&& step) {
  if constexpr (requires { step == nullptr; }) PLUMB_CHECK(step != nullptr, "capture: the function is empty");
  return detail::capture_list([&step]() -> TensorList {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      step();
      return {};
    } else {
      return detail::as_list(step());
    }
  });
}

/// A function of tensors that is captured once for each combination of input specs and replayed from then on.
///
/// Gradients: call grad inside the function, by parameters or by inputs of its own (Tensor x = inputs[0];
/// x.require_grad();), and return them. A replay puts nothing on the tape: outputs have no gradient edge, and an input
/// that needs a gradient is refused while recording is on.
class StaticFunction {
 public:
  using Function = std::function<TensorList(std::span<const Tensor> inputs)>;
  explicit StaticFunction(Function f);
  /// f returns one tensor, or any list of tensors.
  template <std::invocable<std::span<const Tensor>> F>
  explicit StaticFunction(F f)
      : StaticFunction(Function([f = std::move(f)](std::span<const Tensor> inputs) mutable -> TensorList {
          return detail::as_list(f(inputs));
        })) {}
  /// The outputs for these inputs, valid until the next call. Inputs, on whichever device, are copied into the
  /// program's own, which are where the thread's DeviceScope said when this was made.
  const TensorList& operator()(std::span<const Tensor> inputs);
  const TensorList& operator()(std::initializer_list<Tensor> inputs) {
    return (*this)(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }

 private:
  struct Captured {
    TensorList inputs;
    Program program;
  };
  Captured& captured(std::span<const Tensor> inputs);
  Function function_;
  Device device_;
  std::vector<std::unique_ptr<Captured>> all_;
};

}  // namespace plumb
