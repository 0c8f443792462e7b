#include "ops/grad.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "dispatch/gate.h"
#include "kernels/accumulate.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/gathered.h"

namespace plumb {

using detail::Gathered;
using detail::Node;
using detail::Places;
using detail::PoolVector;
using detail::Ref;
using detail::Value;

namespace {

// Finds when the gradient of an x is final: after backward has handled the first op that used it.
class Finals {
 public:
  /// Walks over the whole graph behind y.
  Finals(Node* y, std::span<const Tensor> xs) {
    std::unordered_set<const Node*> seen{y};
    PoolVector<Node*> open{y}, inputs;
    PoolVector<uint64_t> first(xs.size(), kUnused);
    const auto used_by = [&](const Node* x, uint64_t user) {
      for (size_t i = 0; i < xs.size(); ++i) {
        if (xs[i].node.get() == x) first[i] = std::min(first[i], user);
      }
    };
    used_by(y, kUnused - 1);
    while (!open.empty()) {
      const Node* n = open.back();
      open.pop_back();
      inputs.clear();
      n->append_inputs(inputs);
      for (Node* input : inputs) {
        used_by(input, n->sequence);
        if (seen.insert(input).second) open.push_back(input);
      }
    }
    for (size_t i = 0; i < xs.size(); ++i) {
      if (first[i] != kUnused) due_.push_back({first[i], i});
    }
    std::ranges::stable_sort(due_, {}, &Due::user);  // the first one due is last in the list
  }
  /// The index of an x whose gradient is final where backward has handled all nodes but those with sequence numbers up
  /// to `pending`, or -1. Nodes that two threads recorded may have the same number.
  int64_t next(uint64_t pending) {
    if (due_.empty() || due_.back().user <= pending) return -1;
    const auto i = static_cast<int64_t>(due_.back().x);
    due_.pop_back();
    return i;
  }

 private:
  static constexpr uint64_t kUnused = std::numeric_limits<uint64_t>::max();
  struct Due {
    uint64_t user;  // the sequence number of the first op that used x
    size_t x;
  };
  PoolVector<Due> due_;
};

// Gradients of what is cast to f16 add up, too.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  return detail::computed([](const Tensor& x, const Tensor& y) { return add(x, y); }, a, b);
}

// Runs the nodes that lead to an x in descending order of their sequence numbers, by a heap: then a node's gradient is
// complete in its turn.
class Engine final : public detail::GradientSink {
 public:
  Engine(std::span<const Tensor> xs, const GradOptions& options)
      : xs_(xs), on_final_(options.on_final), retain_(options.retain_graph || options.create_graph) {
    create_graph = options.create_graph;
    uint32_t i = 0;
    for (const Tensor& x : xs_) {
      PLUMB_CHECK(x.requires_grad(),
                  "grad: x number {} {} does not need a gradient; call require_grad() before using it, on this handle "
                  "and not on a copy: copies made before do not follow",
                  i, x ? to_string(x.spec()) : "(empty)");
      ++i;
      Gathered& own = places_.at(x.node.get());
      if (!own.wanted) own.wanted = i;
    }
  }

  TensorList run(const Tensor& y, Tensor dy, uint64_t since) {
    TensorList gradients(xs_.size());
    std::optional<Finals> finals;
    if (on_final_) finals.emplace(y.node.get(), xs_);
    places_.find_ways(y.node.get(), since);
    add(y.node.get(), std::move(dy));
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), earlier);
      const size_t place = heap_.back().place;
      heap_.pop_back();
      Gathered& own = places_[place];  // it stays there: find_ways has seen every node that is still to be given to
      own.is_queued = false;
      {
        const Tensor gradient(std::move(own.gradient), std::move(own.edge));
        if (own.wanted) gradients[own.wanted - 1] = gradient;
        if (own.has_x_behind) go_on(own, gradient);
      }
      if (own.has_x_behind && !retain_) own.node->release();
      if (finals) tell_final(*finals, gradients);
    }
    for (size_t i = 0; i < xs_.size(); ++i) {  // an x that is named twice
      const size_t first = places_.at(xs_[i].node.get()).wanted - 1;
      if (first != i) gradients[i] = gradients[first];
    }
    return gradients;
  }

 private:
  struct Queued {
    uint64_t sequence;
    size_t place;
  };
  static bool earlier(const Queued& a, const Queued& b) { return a.sequence < b.sequence; }

  void go_on(Gathered& own, const Tensor& gradient) {
    if (own.outputs) {
      const PoolVector<Tensor> of_outputs = std::move(outputs_[own.outputs - 1u]);
      own.node->backward_outputs(of_outputs, *this);
    } else if (const Tensor term(std::move(own.term)); term) {
      own.node->backward_of_sum(gradient, term, *this);
    } else if (gradient) {
      own.node->backward(gradient, *this);
    }
  }
  void tell_final(Finals& finals, TensorList& gradients) {
    const uint64_t pending = heap_.empty() ? 0 : heap_.front().sequence;
    for (int64_t i; (i = finals.next(pending)) >= 0;) {
      const auto x = static_cast<size_t>(i);
      Gathered& own = places_.at(xs_[x].node.get());
      // If backward has handled x's node already, its gradient is in the results.
      Tensor& result = gradients[own.wanted - 1];
      if (own.gradient) result = Tensor(std::move(own.gradient), std::move(own.edge));
      if (!result) continue;
      // It may be another gradient as well, as both of a sum are the sum's, or dy: what is written shall not show
      // there.
      if (!own.is_told && !result.value->is_private()) result = result.clone();
      own.is_told = true;
      const Tensor gradient = result;
      if (own.is_queued) own.gradient = gradient.value, own.edge = gradient.node;
      on_final_(x, gradient);
    }
  }
  bool wants(Node* n) override { return places_.at(n).is_on_way(); }
  void give_output(Node* of, size_t i, size_t n, Tensor gradient) override {
    const size_t place = places_.of(of);
    Gathered& own = places_[place];
    if (!own.is_on_way()) return;
    if (!own.outputs) {
      outputs_.emplace_back(n);
      own.outputs = static_cast<uint32_t>(outputs_.size()) & 0x0fffffffu;
    }
    outputs_[own.outputs - 1u][i] = std::move(gradient);
    queue(own, place);
  }
  void add(Node* n, Tensor gradient) override {
    const size_t place = places_.of(n);
    Gathered& own = places_[place];
    if (!own.is_on_way()) return;
    if (!own.gradient) {
      own.gradient = std::move(gradient.value);
      own.edge = std::move(gradient.node);
    } else if (!create_graph && own.gradient->is_private() && own.gradient->spec.dtype != DType::kF16) {
      // The last term may be added where the sum is used; of an x the sum itself is a result.
      const Ref<Value> term = n->takes_sums() && !own.wanted ? std::exchange(own.term, std::move(gradient.value))
                                                             : std::move(gradient.value);
      if (term) {
        const detail::In in[2] = {{own.gradient.get()}, {term.get()}};
        update<Accumulate>({}, in, Writes{0, 1});
      }
    } else {
      Tensor total = sum_of(Tensor(std::move(own.gradient), std::move(own.edge)), gradient);
      own.gradient = std::move(total.value);
      own.edge = std::move(total.node);
    }
    queue(own, place);
  }
  bool passes(Node* n) override {
    if (create_graph) return false;
    const size_t place = places_.of(n);
    if (places_[place].wanted) return false;
    queue(places_[place], place);
    return true;
  }
  void queue(Gathered& own, size_t place) {
    if (own.is_queued) return;
    own.is_queued = true;
    heap_.push_back({own.node->sequence, place});
    std::push_heap(heap_.begin(), heap_.end(), earlier);
  }

  std::span<const Tensor> xs_;
  const std::function<void(size_t, const Tensor&)>& on_final_;
  bool retain_;
  Places places_;
  PoolVector<PoolVector<Tensor>> outputs_;
  PoolVector<Queued> heap_;
};

TensorList run_engine(const Tensor& y, std::span<const Tensor> xs, const Tensor& dy, const GradOptions& options,
                      uint64_t since) {
  PLUMB_CHECK(y, "grad: y is an empty tensor");
  PLUMB_CHECK(detail::ctx.recorder || !y.value->is_symbolic(),
              "grad: y {} comes from a captured step; call grad inside of it, and return the gradients", y.spec());
  PLUMB_CHECK(
      y.requires_grad(),
      "grad: y {} was computed without recording, or from nothing that needs a gradient; require_grad() marks "
      "the handle that it is called on and copies made afterwards: call it on the model's own before using them",
      y.spec());
  PLUMB_CHECK(dy && dy.spec() == y.spec(), "grad: dy is {}; it must be of y's spec {}",
              dy ? to_string(dy.spec()) : "an empty tensor", y.spec());
  TensorList held;  // a callback may assign to the caller's handles, as the update of a parameter does
  if (options.on_final) {
    held.assign(xs.begin(), xs.end());
    held.push_back(y);  // without which its graph would go
    xs = std::span<const Tensor>(held).first(xs.size());
  }
  detail::number_after(y.node.get());  // what backward records follows it, whichever thread recorded y
  const detail::Scoped<bool> recording(detail::ctx.recording, options.create_graph);
  const MemoryScope memory(MemoryClass::kGradient);
  const detail::Scoped<Phase> phase(detail::ctx.phase, Phase::kBackward);
  TensorList gradients = Engine(xs, options).run(y, options.create_graph ? dy : dy.detached(), since);
  for (size_t i = 0; i < xs.size(); ++i) {
    PLUMB_CHECK(gradients[i] || options.allow_unused,
                "grad: y does not depend on x number {} {}; leave it out or pass allow_unused; an x that was copied "
                "before require_grad() was called is another one to it",
                i, xs[i].spec());
  }
  return gradients;
}

}  // namespace

TensorList grad(const Tensor& y, std::span<const Tensor> xs, const Tensor& dy, GradOptions options) {
  return run_engine(y, xs, dy, options, 0);
}

TensorList detail::grad_since(uint64_t since, const Tensor& y, std::span<const Tensor> xs, const Tensor& dy) {
  return run_engine(y, xs, dy, {.allow_unused = true}, since);
}

TensorList grad(const Tensor& y, std::span<const Tensor> xs, GradOptions options) {
  PLUMB_CHECK(y, "grad: y is an empty tensor");
  PLUMB_CHECK(y.numel() == 1, "grad: y has shape {}; pass a cotangent dy for a y of more than one element", y.shape());
  Tensor one;
  {
    const MemoryScope memory(MemoryClass::kGradient);
    one = ones_like(y);
  }
  return grad(y, xs, one, options);
}

}  // namespace plumb
