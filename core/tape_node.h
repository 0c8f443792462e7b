// One recorded application on the tape, without its closures.
#pragma once

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
  bool create_graph = false;

 protected:
  ~GradientSink() = default;

 private:
  virtual void add(Node* to, Tensor gradient) = 0;
};

/// A node of the tape. Leaves are plain nodes; recorded ops derive from it and hold their closures in the same
/// allocation (core/tape.h). A node and the graph behind it belong to one thread at a time.
class Node {
 public:
  std::atomic<uint32_t> refs{1};
  uint32_t wanted = 0;  ///< 1 + its place in the list of the grad call under way, or 0
  uint32_t bytes = 0;   ///< of the allocation
  bool queued = false;
  uint64_t sequence = 0;  ///< later ops have larger numbers; backward runs from the largest
  TensorSpec spec;        ///< of the tensor, and so of its gradient
  Ref<Value> pending;     ///< the gradient gathered so far
  Ref<Node> pending_node;

  /// The node of a tensor that gradients are asked for and that no op made: nothing is behind it.
  static Ref<Node> make_leaf(const TensorSpec& spec);
  virtual void backward(const Tensor&, GradientSink&) {}
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
