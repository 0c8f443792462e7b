// One recorded application on the tape, without its closures.
#pragma once

#include <span>

#include "value.h"

namespace plumb {
class Tensor;
}

namespace plumb::detail {

/// Where the closures of a node hand the gradients they computed (ops/grad.cpp).
class GradientSink {
 public:
  /// Adds the gradient that `op` computed to what `to` has gathered so far. An empty one is none. Throws unless it is
  /// of the spec of the tensor behind `to`.
  void give(Node* to, Tensor gradient, const char* op);
  /// Hands over the gradient of output `i` of the `n` outputs that `of` has: see Node::backward_outputs.
  virtual void give_output(Node* of, size_t i, size_t n, Tensor gradient) = 0;
  /// Whether a closure may leave `n` out, and give what is behind it what `n` would: nobody asks for the gradient of
  /// n's own tensor, nor for a graph. Others may give to `n` all the same; it is released in its turn.
  virtual bool passes(Node* /*n*/) { return false; }
  bool create_graph = false;

 protected:
  ~GradientSink() = default;

 private:
  virtual void add(Node* to, Tensor gradient) = 0;
};

/// A node of the tape. Leaves are plain nodes; recorded ops derive from it and hold their closures in the same
/// allocation (core/tape.h). What a call of grad gathers stands in the call: calls may nest, and threads may share
/// leaves. Any other node, and the graph behind it, belongs to one thread at a time.
class Node {
 public:
  std::atomic<uint32_t> refs{1};
  uint32_t bytes = 0;     ///< of the allocation
  uint64_t sequence = 0;  ///< later ops have larger numbers; backward runs from the largest
  TensorSpec spec;        ///< of the tensor, and so of its gradient

  /// The node of a tensor that gradients are asked for and that no op made: nothing is behind it.
  static Ref<Node> make_leaf(const TensorSpec& spec);
  virtual void backward(const Tensor&, GradientSink&) {}
  /// The same for an op of several outputs, whose tensors have nodes of their own (OutputNode). The gradients of those
  /// that nobody used are empty.
  virtual void backward_outputs(std::span<const Tensor>, GradientSink&) {}
  /// Appends the nodes that backward gives gradients to.
  virtual void append_inputs(PoolVector<Node*>&) const {}
  /// Drops what was kept for backward.
  virtual void release() {}
  /// Iterative: a chain a million deep must not recurse.
  static void destroy(Node* n);

 protected:
  Node() = default;
  virtual ~Node() = default;

 private:
  Node* next_dying_ = nullptr;
};

}  // namespace plumb::detail
