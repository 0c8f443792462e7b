// Reverse-mode differentiation.
#pragma once

#include <functional>

#include "../core/tape.h"

namespace plumb {

/// What grad does beside computing gradients.
struct GradOptions {
  bool create_graph = false;  ///< the gradients can be differentiated again
  bool retain_graph = false;  ///< grad may run through this graph again
  bool allow_unused = false;  ///< an x on which y does not depend gets an empty tensor; otherwise that is an error
  /// Called with the index and the gradient of an x as soon as nothing more is added to it, while backward continues:
  /// for sending it to other machines, or for updating a parameter, whose handle it may assign to. Writes to the
  /// gradient show in grad's result and, of an intermediate x but y itself, in what backward goes on to from it; in no
  /// other gradient. Costs a walk over the graph in advance. Not called for an x on which y does not depend.
  std::function<void(size_t i, const Tensor& gradient)> on_final = {};
};

/// The gradients of y with respect to each of xs, for the cotangent dy of y's spec. They are returned as values;
/// nothing is stored in the xs. If a tensor is used several times, its gradients are added in the order in which
/// backward reaches them. Several of them, and dy, may share memory, as both gradients of a sum do. Only ops between y
/// and an x are run through; unless the graph is retained, what those kept is freed. Throws if y was computed without
/// recording, if an x needs no gradient, or if an x was not used.
TensorList grad(const Tensor& y, std::span<const Tensor> xs, const Tensor& dy, GradOptions options = {});
/// The same for a y with one element, with dy = 1.
TensorList grad(const Tensor& y, std::span<const Tensor> xs, GradOptions options = {});
inline TensorList grad(const Tensor& y, std::initializer_list<Tensor> xs, GradOptions options = {}) {
  return grad(y, std::span<const Tensor>(xs.begin(), xs.size()), options);
}
inline TensorList grad(const Tensor& y, std::initializer_list<Tensor> xs, const Tensor& dy, GradOptions options = {}) {
  return grad(y, std::span<const Tensor>(xs.begin(), xs.size()), dy, options);
}

namespace detail {
/// grad with respect to xs within a graph that ends at what was recorded when the thread's count of nodes was `since`:
/// what is older is neither run through nor released. An x on which y does not depend gets an empty tensor.
TensorList grad_since(uint64_t since, const Tensor& y, std::span<const Tensor> xs, const Tensor& dy);
}  // namespace detail

}  // namespace plumb
