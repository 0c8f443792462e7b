// A captured step: a function's work, prepared, with planned memory, and replayed.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include "../core/tensor.h"
#include "../dispatch/gate.h"

namespace plumb {

/// Statistics of a captured program.
struct ProgramStats {
  int64_t recorded = 0;        ///< kernels that the function called
  int64_t steps = 0;           ///< kernels that a run executes
  size_t arena_bytes = 0;      ///< memory of all intermediate values together
  size_t unplanned_bytes = 0;  ///< what the intermediate values would take without sharing memory
  size_t workspace_bytes = 0;
};

class Program;
namespace detail {
Program capture_list(const std::function<TensorList()>& step);
}  // namespace detail

/// The work of a captured step, in order. Every tensor with memory that the function used is held and bound by address:
/// inputs are refilled in place, parameters are updated in place. A run allocates nothing, looks up nothing and puts
/// nothing on the tape. Only one thread may run a program at a time.
class Program {
 public:
  Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Does the work of the captured function once. Throws on an empty program (default-constructed or moved from), and
  /// while the thread captures.
  void run();
  /// What the function returned; run() fills them.
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
// Converts what a captured function may return to a list.
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

/// Runs `step` once without doing the work of its ops, and returns that work as a program. `step` returns a tensor, a
/// list of tensors, or nothing. Its ops give tensors without data: reading one throws. Tensors that existed before are
/// inputs; run() reads and writes them. Ops that affect no output and no write are left out.
///
/// Whatever `step` does besides ops happens once, while capturing, and not in run():
///  - Numbers are frozen: a branch on item(), the seed of uniform, a learning rate that is a C++ number. For a value
///    that changes between runs, use a tensor that is refilled (copy_from, Optimizer::set_learning_rate).
///  - uniform, normal, Tensor::from and mutable_data throw, since they would write once for all runs. Dropout draws
///    new numbers in every run, from its generator's counter.
///  - A handle that is assigned another tensor (w = w - 0.1 * g) keeps what capture gave it, which has no memory
///    outside the program. w.copy_from(w - 0.1 * g) writes in every run.
/// Call grad inside `step`, and return the gradients or pass them to an optimizer. What the program will write counts
/// as being written while it is captured: other threads may not use those tensors meanwhile, as in any write.
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

/// A function of tensors that is captured once for each combination of input specs and replayed from then on, with the
/// kernels that the policy of that first call chose.
///
/// Gradients: call grad inside the function, with respect to parameters or to its inputs (Tensor x = inputs[0];
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
  /// The outputs for these inputs, valid until the next call. Inputs may be on any device; they are copied to the
  /// program's own inputs, which are on the device that DeviceScope named when this object was made.
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
