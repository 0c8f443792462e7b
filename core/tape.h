// Recording: the gradient closures of an op, written beside its forward.
//
//   return record(run<K>(...), wrt(x, [w = SavedTensor(w)](const Tensor& dy) { return ...; }), wrt(w, ...));
//
// A closure gets dy (or dy and the op's own output) and returns the gradient with respect to one input. Closures call
// ops, never the gate, so that gradients can be differentiated again. Closures list their captures: no [=].
#pragma once

#include <array>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>

#include "tensor.h"

namespace plumb {

namespace detail {
/// The name that errors use for an op: `caller`, the function's name, unless that is a lambda or a functor.
const char* op_name(const char* caller);
}  // namespace detail

/// A tensor kept for backward; it may be empty (an optional bias). Reading it after its memory was written to throws an
/// error that names the op: `op`, or else the function that made this.
class SavedTensor {
 public:
  explicit SavedTensor(const Tensor& x, const char* op = __builtin_FUNCTION())
      : tensor_(x), version_(x ? x.value->version() : 0), op_(op) {}
  const Tensor& operator()() const {
    PLUMB_CHECK(
        !tensor_ || tensor_.value->version() == version_,
        "{}: a tensor {} that was kept for backward was written to in between (version {}, now {}); write to it "
        "after grad, or keep a copy",
        detail::op_name(op_), tensor_.spec(), version_, tensor_.value->version());
    return tensor_;
  }

 private:
  Tensor tensor_;
  uint32_t version_;
  const char* op_;
};

namespace detail {
template <class F>
struct Wrt {
  const Tensor& x;
  F gradient;
  const char* op;
};
}  // namespace detail

/// The gradient with respect to x is gradient(dy), or gradient(dy, y). The closure, and what it saves, is kept only if
/// x needs a gradient. Errors name the op: `op`, or else the calling function.
template <class F>
detail::Wrt<F> wrt(const Tensor& x, F gradient, const char* op = __builtin_FUNCTION()) {
  return {x, std::move(gradient), op};
}
/// The same, for a closure of many lines.
template <class F>
detail::Wrt<F> wrt(const Tensor& x, const char* op, F gradient) {
  return wrt(x, std::move(gradient), op);
}

namespace detail {

template <class F>
inline constexpr bool takes_output = std::is_invocable_v<F, const Tensor&, const Tensor&>;

[[noreturn, gnu::cold]] inline void fail_released() {
  fail("grad: backward ran through this graph before and released it; pass retain_graph to the first call");
}

inline void check_output(const Value& y, uint32_t version, const char* op) {
  PLUMB_CHECK(y.version() == version, "{}: its output {} was written to before backward; write to it after grad",
              op_name(op), y.spec);
}

// Sequence numbers grow along every edge, even if a thread with a higher count recorded the input.
inline void number_after(const Node* input) {
  if (input->sequence > ctx.sequence) [[unlikely]]
    ctx.sequence = input->sequence;
}

inline void append(PoolVector<Node*>& inputs, const Ref<Node>& to) {
  if (to) inputs.push_back(to.get());
}

template <class F>
struct Edge {
  Ref<Node> to;
  std::optional<F> gradient;
  const char* op;

  explicit Edge(Wrt<F>&& w) : to(w.x.node), op(w.op) {
    if (!to) return;
    gradient.emplace(std::move(w.gradient));
    number_after(to.get());
  }
  // What keeps no tensor may be asked again.
  void release() {
    if constexpr (takes_output<F> || !std::is_trivially_destructible_v<F>) gradient.reset();
  }
  void backward(const Tensor& dy, const Ref<Value>& y, uint32_t y_version, Node* self, GradientSink& sink) {
    if (!to || !sink.wants(to.get())) return;
    if (!gradient) fail_released();
    if constexpr (takes_output<F>) {
      // The closure gets the output without its node, so that there is no cycle.
      const Tensor output(y, sink.create_graph ? Ref<Node>(self) : Ref<Node>());
      check_output(*y, y_version, op);
      sink.give(to.get(), (*gradient)(dy, output), op);
    } else {
      sink.give(to.get(), (*gradient)(dy), op);
    }
  }
};

template <class... F>
class RecordedNode final : public Node {
 public:
  explicit RecordedNode(const Tensor& y, Wrt<F>&&... w) : edges_(Edge<F>(std::move(w))...) {
    bytes = sizeof *this;
    if constexpr (kKeepsOutput) {
      y_ = y.value;
      y_version_ = y.value->version();
    }
  }
  void backward(const Tensor& dy, GradientSink& sink) override {
    std::apply([&](auto&... e) { (e.backward(dy, y_, y_version_, this, sink), ...); }, edges_);
  }
  void append_inputs(PoolVector<Node*>& inputs) const override {
    std::apply([&](const auto&... e) { (append(inputs, e.to), ...); }, edges_);
  }
  void release() override {
    std::apply([](auto&... e) { (e.release(), ...); }, edges_);
    y_ = {};
  }

 private:
  static constexpr bool kKeepsOutput = (takes_output<F> || ...);
  std::tuple<Edge<F>...> edges_;
  Ref<Value> y_;
  uint32_t y_version_ = 0;
};

// F takes the gradient of the one output, or a list with the gradients of several outputs.
template <size_t N, class F>
class JointNode final : public Node {
 public:
  JointNode(const std::array<const Tensor*, N>& x, F&& f, const char* op) : gradients_(std::move(f)), op_(op) {
    bytes = sizeof *this;
    for (size_t i = 0; i < N; ++i) {
      to_[i] = x[i]->node;
      if (to_[i]) number_after(to_[i].get());
    }
  }
  void backward(const Tensor& dy, GradientSink& sink) override {
    if constexpr (std::is_invocable_v<F, const Tensor&, const std::array<bool, N>&>) give(dy, sink);
  }
  void backward_outputs(std::span<const Tensor> dy, GradientSink& sink) override {
    if constexpr (std::is_invocable_v<F, std::span<const Tensor>, const std::array<bool, N>&>) give(dy, sink);
  }
  void append_inputs(PoolVector<Node*>& inputs) const override {
    for (const Ref<Node>& to : to_) append(inputs, to);
  }
  void release() override {
    if constexpr (!std::is_trivially_destructible_v<F>) gradients_.reset();
  }

 private:
  template <class Dy>
  void give(const Dy& dy, GradientSink& sink) {
    if (!gradients_) fail_released();
    std::array<bool, N> needs;
    for (size_t i = 0; i < N; ++i) needs[i] = to_[i] && sink.wants(to_[i].get());
    auto dx = (*gradients_)(dy, needs);
    for (size_t i = 0; i < N; ++i) {
      if (needs[i]) sink.give(to_[i].get(), std::move(dx[i]), op_);
    }
  }

  std::array<Ref<Node>, N> to_;
  std::optional<F> gradients_;
  const char* op_;
};

template <class N, class... Args>
Ref<Node> make_node(const TensorSpec& spec, Args&&... args) {
  Node* n = new (ctx.pool.get(sizeof(N))) N(std::forward<Args>(args)...);
  n->sequence = ++ctx.sequence;
  n->spec = spec;
  return Ref<Node>::adopt(n);
}
template <class N, class... Args>
void attach(Tensor& y, Args&&... args) {
  y.node = make_node<N>(y.spec(), std::forward<Args>(args)...);
}

// One of several outputs of an op. Its number is higher than that of the op's own node, so when backward reaches the
// op, it has the gradients of all outputs.
class OutputNode final : public Node {
 public:
  OutputNode(Ref<Node> of, size_t i, size_t n) : of_(std::move(of)), i_(i), n_(n) { bytes = sizeof *this; }
  void backward(const Tensor& dy, GradientSink& sink) override { sink.give_output(of_.get(), i_, n_, dy); }
  void append_inputs(PoolVector<Node*>& inputs) const override { append(inputs, of_); }

 private:
  Ref<Node> of_;
  size_t i_, n_;
};

}  // namespace detail

/// y with its gradient edges, if recording is on and an input needs a gradient.
template <class... F>
Tensor record(Tensor y, detail::Wrt<F>... w) {
  if (detail::ctx.recording && (w.x.node || ...)) detail::attach<detail::RecordedNode<F...>>(y, y, std::move(w)...);
  return y;
}

/// Which of the inputs of a joint backward pass need a gradient.
template <size_t N>
using Needs = std::array<bool, N>;

/// As record, for an op that computes all its gradients together: gradients(dy, needs) returns an array of N tensors,
/// empty where none is needed. Errors name the op as those of wrt do.
template <size_t N, class F>
Tensor record_joint(Tensor y, std::array<const Tensor*, N> x, F gradients, const char* op = __builtin_FUNCTION()) {
  bool any = false;
  for (const Tensor* t : x) any |= t->requires_grad();
  if (detail::ctx.recording && any) detail::attach<detail::JointNode<N, F>>(y, x, std::move(gradients), op);
  return y;
}

/// As record_joint, for an op of several outputs: puts the gradient edges on the tensors of y. gradients(dy, needs)
/// gets a list with the gradient of each output, empty for outputs that nobody used; at least one is not empty.
template <size_t N, class F>
void record_outputs(std::span<Tensor> y, std::array<const Tensor*, N> x, F gradients,
                    const char* op = __builtin_FUNCTION()) {
  static_assert(std::is_invocable_v<F, std::span<const Tensor>, const Needs<N>&>);
  bool any = false;
  for (const Tensor* t : x) any |= t->requires_grad();
  if (!detail::ctx.recording || !any || y.empty()) return;
  const detail::Ref<detail::Node> node =
      detail::make_node<detail::JointNode<N, F>>(y[0].spec(), x, std::move(gradients), op);
  for (size_t i = 0; i < y.size(); ++i) detail::attach<detail::OutputNode>(y[i], node, i, y.size());
}

}  // namespace plumb
