// What the optimizers share. They follow one framework's formulas and defaults each (Convention), and update all
// parameters in one kernel.
#pragma once

#include <string>
#include <utility>

#include "../core/convention.h"
#include "../dispatch/gate.h"

namespace plumb::optim {

/// Parameters, and what is remembered about them between steps. A step writes to the memory of the parameters, and
/// their versions rise: a graph that kept them cannot be differentiated after it.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One step with the gradients in the order of the parameters, each of its parameter's spec. Nothing is recorded; a
  /// warm step calls no malloc. Throws on a wrong number of gradients, on an empty one and on one of another spec.
  void step(std::span<const Tensor> gradients) { step(gradients, {}); }
  /// The same with bf16 copies of f32 parameters, in their order, or empty tensors for those without one: the gradient
  /// of such a parameter is its copy's, in bf16, and the copy is written together with the parameter.
  void step(std::span<const Tensor> gradients, std::span<const Tensor> copies);

  /// A scalar of the parameters' dtype, f32 for bf16 ones. Kernels read it when they run: a captured step follows it.
  Tensor learning_rate() const { return rate_; }
  /// Throws unless rate is a finite number of at least 0.
  void set_learning_rate(double rate);
  /// How many steps were done, those of programs that replay a captured one included. Counted on the host: nothing is
  /// read and no device is waited for, but once after something else has written to "step" of state(), as reading a
  /// checkpoint does, or after a step that has thrown. Throws while a step is captured.
  int64_t steps() const;
  std::span<const Tensor> parameters() const { return parameters_; }
  /// All that a checkpoint needs besides the parameters: "learning_rate", "step" (i64), and for parameter number i
  /// "velocity.i", "mean.i", "mean_square.i", and "master.i" of bf16 ones, as far as the optimizer has them. The
  /// tensors are the optimizer's own: writing to them restores a checkpoint.
  std::vector<std::pair<std::string, Tensor>> state() const;

 protected:
  /// A state that every parameter has, and its first value.
  struct State {
    const char* name;
    double initial = 0;
  };
  /// Takes f32, f64 or bf16 parameters, all of one dtype, that need a gradient; throws on others and on one that comes
  /// twice. Of bf16 ones it keeps masters in f32, taken here: steps are made on these, and the parameters are written
  /// as their rounded copies. Values that parameters are given later must be given to their masters, too.
  Optimizer(const char* name, std::span<const Tensor> parameters, double learning_rate, std::span<const State> states);

  /// What a step is given, and fits.
  struct Given {
    std::span<const Tensor> gradients, copies;
  };
  /// The work of a step.
  virtual void apply(const Given& given) = 0;
  /// One step by the kernels of kind K (kernels/optimizer.h).
  template <class K>
  void update_by(const typename K::Params& params, const Given& given) const {
    const auto in = inputs(given);
    auto p = params;
    p.copies = static_cast<int64_t>(in.size() - 2 - 2 * parameters_.size() - states_.size());
    update<K>(p, in, Writes{1, static_cast<uint32_t>(in.size() - 1 - parameters_.size())});
  }

 private:
  void check_given(const Given& given) const;
  detail::PoolVector<detail::In> inputs(const Given& given) const;

  // What is known of step_: its value when so many writes were steps and so many were not.
  struct Counted {
    int64_t steps = 0;
    uint32_t by_steps = 0, by_others = 0;
  };

  const char* name_;
  Tensor rate_, step_;
  detail::Ref<detail::Value> step_of_updates_;  // an alias of it for the updates alone, whose writes are the steps
  mutable Counted counted_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> masters_;  // in f32, of parameters in bf16
  std::vector<State> kinds_;
  std::vector<Tensor> states_;  // all parameters' first state, then all parameters' second
};

}  // namespace plumb::optim

namespace plumb::detail {
/// Throws "name: what is ..." unless value is a finite number of at least 0.
void check_nonnegative(const char* name, const char* what, double value);
/// The same unless 0 <= value < 1.
void check_fraction(const char* name, const char* what, double value);
/// Throws on weight decay that is out of range, or asked of TensorFlow 1, which has none.
void check_weight_decay(const char* name, double weight_decay, Convention convention);
}  // namespace plumb::detail
