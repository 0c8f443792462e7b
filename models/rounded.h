// Copies in bf16 of a network's parameters, for a training step that computes in it.
#pragma once

#include <unordered_map>
#include <vector>

#include "network.h"

namespace plumb::models {

/// A network's f32 parameters rounded to bf16 once, instead of at each use. A pass that has these in its ForwardContext
/// takes them where a layer would round its parameters; gradients are then those of the copies, in bf16, and an
/// optimizer that is given the copies (Optimizer::step) writes them together with the parameters: what was three passes
/// over each parameter is one. The numbers are the same to the bit where a pass uses each parameter once; the gradients
/// of one that it uses more often are added up in bf16.
class RoundedParameters {
 public:
  /// Of all parameters in f32. Keeps a reference to the network. Throws while a step is captured.
  explicit RoundedParameters(const Network& network);
  RoundedParameters(const RoundedParameters&) = delete;
  RoundedParameters& operator=(const RoundedParameters&) = delete;

  /// Rounds those parameters anew that something has written without their copies, as reading a checkpoint does. Not
  /// those that no pass has used so far, once there was a pass.
  void refresh();
  /// The copy of a parameter, which counts as used from then on. An empty tensor for one of another network, and, while
  /// a step is captured, for one that refresh() would have to round.
  Tensor of(const Tensor& parameter);
  /// The gradients of a pass's loss, in the order of the network's parameters: of those whose copies it used, the
  /// copies'. Throws if it used both a parameter and its copy, and if it used neither.
  TensorList gradients(const Tensor& loss);
  /// The copies that were used, in the order of the network's parameters; empty tensors elsewhere.
  TensorList used() const;

 private:
  struct Copy {
    Tensor tensor;
    bool is_used = false;
    uint32_t ahead = 0;  // by how many writes the parameter is ahead of a copy that is up to date
  };
  bool is_stale(size_t i) const;
  void round(size_t i);

  const Network& network_;
  bool has_passed_ = false;   // the parameters that passes use as bf16 are known
  std::vector<Copy> copies_;  // of each parameter
  std::unordered_map<const detail::Value*, size_t> number_;
};

}  // namespace plumb::models
