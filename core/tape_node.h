// The tape's record of one op, without its closures.
#pragma once

#include <span>

#include "value.h"

namespace plumb {
class Tensor;
}

namespace plumb::detail {

/// Where a node's closures hand over the gradients that they computed (ops/grad.cpp).
class GradientSink {
 public:
  /// Adds the gradient that `op` computed to the sum for node `to`. An empty gradient adds nothing. Throws if its spec
  /// differs from that of the tensor of `to`.
  void give(Node* to, Tensor gradient, const char* op);
  /// Whether anybody asks for the gradient of `to`, or for one behind it; otherwise it need not be computed.
  virtual bool wants(Node* /*to*/) { return true; }
  /// Hands over the gradient of output `i` of the op `of`, which has `n` outputs: see Node::backward_outputs.
  virtual void give_output(Node* of, size_t i, size_t n, Tensor gradient) = 0;
  /// Whether a closure may skip node `n`, which is wanted, and give gradients directly to the inputs of `n`: if so,
  /// nobody asks for n's own gradient, nor for a graph. Other closures may still give to `n`; it is released in its
  /// turn.
  virtual bool passes(Node* /*n*/) { return false; }
  bool create_graph = false;

 protected:
  ~GradientSink() = default;

 private:
  virtual void add(Node* to, Tensor gradient) = 0;
};

/// A node of the tape. Leaves are plain Nodes; recorded ops derive from Node and hold their closures in the same
/// allocation (core/tape.h). A call of grad keeps its sums itself: calls may nest, and threads may share leaves. Any
/// other node, and the graph behind it, belongs to one thread at a time.
class Node {
 public:
  std::atomic<uint32_t> refs{1};
  uint32_t bytes = 0;     ///< size of the allocation
  uint64_t sequence = 0;  ///< later ops have larger numbers; backward runs from the largest
  TensorSpec spec;        ///< of the tensor, hence also of its gradient

  /// The node of a tensor that no op made but that needs a gradient: the graph ends here.
  static Ref<Node> make_leaf(const TensorSpec& spec);
  virtual void backward(const Tensor&, GradientSink&) {}
  /// The same for an op of several outputs, whose tensors have their own nodes (OutputNode). Outputs that nobody used
  /// have empty gradients.
  virtual void backward_outputs(std::span<const Tensor>, GradientSink&) {}
  /// Whether backward_of_sum may be called in the place of backward: with two gradients, of which it takes the sum, and
  /// may write to the first.
  virtual bool takes_sums() const { return false; }
  virtual void backward_of_sum(const Tensor&, const Tensor&, GradientSink&) {}
  /// Appends the nodes to which backward gives gradients.
  virtual void append_inputs(PoolVector<Node*>&) const {}
  /// Drops what was kept for backward.
  virtual void release() {}
  /// Iterative, since a chain a million nodes deep must not overflow the stack.
  static void destroy(Node* n);

 protected:
  Node() = default;
  virtual ~Node() = default;

 private:
  Node* next_dying_ = nullptr;
};

}  // namespace plumb::detail
