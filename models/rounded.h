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

  /// Rounds those parameters anew that something has written without their copies, as reading a checkpoint does.
  void refresh();
  /// The copy of a parameter, which counts as used from then on. An empty tensor for one of another network.
  Tensor of(const Tensor& parameter);
  /// What a gradient is asked for, in the order of the network's parameters: the copy of one that was used, the
  /// parameter itself elsewhere.
  TensorList trainable() const;
  /// The copies that were used, in the order of the network's parameters; empty tensors elsewhere.
  TensorList used() const;

 private:
  struct Copy {
    Tensor tensor;
    bool is_used = false;
    uint32_t ahead = 0;  // by how many writes the parameter is ahead of a copy that is up to date
  };
  const Network& network_;
  std::vector<Copy> copies_;  // of each parameter
  std::unordered_map<const detail::Value*, size_t> number_;
};

}  // namespace plumb::models
