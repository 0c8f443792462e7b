#include "ops/grad.h"

#include <algorithm>

#include "kernels/accumulate.h"
#include "kernels/recorder.h"
#include "ops/elementwise.h"
#include "ops/fill.h"

namespace plumb {

using detail::Node;
namespace {

// What a capture holds is for its replay, in which the order is the same: it does not stand in the way of adding in
// place.
uint32_t recorded(const detail::Value* v) { return detail::ctx.recorder ? detail::ctx.recorder->references(v) : 0; }

bool earlier(const Node* a, const Node* b) { return a->sequence < b->sequence; }

// The nodes whose gradient is complete up to later ones: a heap by sequence number.
class Engine final : public detail::GradientSink {
 public:
  Engine(std::span<const Tensor> xs, const GradOptions& options)
      : xs_(xs), retain_(options.retain_graph || options.create_graph) {
    create_graph = options.create_graph;
    uint32_t i = 0;
    for (const Tensor& x : xs_) {
      PLUMB_CHECK(x.requires_grad(),
                  "grad: x number {} {} does not need a gradient; call require_grad() before using it", i,
                  x ? to_string(x.spec()) : "(empty)");
      ++i;
    }
    for (i = 0; const Tensor& x : xs_) {
      ++i;
      if (!x.node->wanted) x.node->wanted = i;
    }
  }
  ~Engine() {  // also after an exception: nodes must not stay marked
    for (Node* n : heap_) {
      n->queued = false;
      n->pending = {};
      n->pending_node = {};
    }
    for (const Tensor& x : xs_) x.node->wanted = 0;
  }

  void add(Node* n, Tensor gradient) override {
    if (!n->pending) {
      n->pending = std::move(gradient.value);
      n->pending_node = std::move(gradient.node);
    } else if (!create_graph && n->pending->is_private(recorded(n->pending.get()))) {
      const detail::In in[2] = {{n->pending.get()}, {gradient.value.get()}};
      update<Accumulate>({}, in, Writes{0, 1});
    } else {
      Tensor total = plumb::add(Tensor(std::move(n->pending), std::move(n->pending_node)), gradient);
      n->pending = std::move(total.value);
      n->pending_node = std::move(total.node);
    }
    if (!n->queued) {
      n->queued = true;
      heap_.push_back(n);
      std::push_heap(heap_.begin(), heap_.end(), earlier);
    }
  }

  TensorList run(const Tensor& y, Tensor dy) {
    TensorList gradients(xs_.size());
    add(y.node.get(), std::move(dy));
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), earlier);
      Node* n = heap_.back();
      heap_.pop_back();
      n->queued = false;
      const Tensor gradient(std::move(n->pending), std::move(n->pending_node));
      if (n->wanted) gradients[n->wanted - 1] = gradient;
      n->backward(gradient, *this);
      if (!retain_) n->release();
    }
    return gradients;
  }

 private:
  std::span<const Tensor> xs_;
  bool retain_;
  detail::PoolVector<Node*> heap_;
};

}  // namespace

TensorList grad(const Tensor& y, std::span<const Tensor> xs, const Tensor& dy, GradOptions options) {
  PLUMB_CHECK(y, "grad: y is an empty tensor");
  PLUMB_CHECK(y.requires_grad(), "grad: y {} was computed without recording, or from nothing that needs a gradient",
              y.spec());
  PLUMB_CHECK(dy && dy.spec() == y.spec(), "grad: dy is {}; it must be of y's spec {}",
              dy ? to_string(dy.spec()) : "an empty tensor", y.spec());
  const detail::Scoped<bool> recording(detail::ctx.recording, options.create_graph);
  const MemoryScope memory(MemoryClass::kGradient);
  const detail::Scoped<Phase> phase(detail::ctx.phase, Phase::kBackward);
  Engine engine(xs, options);
  TensorList gradients = engine.run(y, options.create_graph ? dy : dy.detached());
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!gradients[i] && xs[i].node->wanted - 1 != i) gradients[i] = gradients[xs[i].node->wanted - 1];  // named twice
    PLUMB_CHECK(gradients[i] || options.allow_unused,
                "grad: y does not depend on x number {} {}; leave it out or pass allow_unused", i, xs[i].spec());
  }
  return gradients;
}

TensorList grad(const Tensor& y, std::span<const Tensor> xs, GradOptions options) {
  PLUMB_CHECK(y, "grad: y is an empty tensor");
  PLUMB_CHECK(y.numel() == 1, "grad: y has shape {}; pass a cotangent dy for a y of more than one element", y.shape());
  Tensor one;
  {
    const MemoryScope memory(MemoryClass::kGradient);
    one = ones(y.spec());
  }
  return grad(y, xs, one, options);
}

}  // namespace plumb
