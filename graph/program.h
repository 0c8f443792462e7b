// A captured step: the work that one run of a function does, prepared, planned in memory, and replayed.
#pragma once

#include <functional>

#include "../core/tensor.h"
#include "../kernels/gate.h"

namespace plumb {

/// What capture learned of a program.
struct ProgramStats {
  int64_t recorded = 0;        ///< kernels that the function ran
  int64_t steps = 0;           ///< of which a run executes this many
  size_t arena_bytes = 0;      ///< memory of all intermediate values together
  size_t unplanned_bytes = 0;  ///< what they would take without sharing memory
  size_t workspace_bytes = 0;
};

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
  std::vector<const Prepared*> kernels() const;

 private:
  struct Impl;
  friend Program capture(const std::function<TensorList()>& step);
  std::unique_ptr<Impl> impl_;
};

/// Runs `step` once without doing its work, and returns that work. Ops inside give tensors without data: reading one
/// throws. Tensors that exist before are inputs; they are read and written by run(). What no output and no write
/// depends on is left out.
Program capture(const std::function<TensorList()>& step);

/// A function of tensors that is captured once for each combination of input specs and replayed from then on.
class StaticFunction {
 public:
  using Function = std::function<TensorList(std::span<const Tensor> inputs)>;
  explicit StaticFunction(Function f);
  /// The outputs for these inputs, valid until the next call. Inputs are copied into the program's own.
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
  std::vector<std::unique_ptr<Captured>> all_;
};

}  // namespace plumb
