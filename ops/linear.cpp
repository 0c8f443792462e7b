#include "ops/linear.h"

#include <optional>

#include "dispatch/gate.h"
#include "ops/activation.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace plumb {
namespace {

void check(const Tensor& x, const Tensor& w, const Tensor& b) {
  PLUMB_CHECK(x && w, "linear: {} is an empty tensor", x ? "w" : "x");
  PLUMB_CHECK(x.rank() >= 1 && x.layout() == Layout::kNchw, "linear: x is {}; it must be (..., IN), row-major",
              x.spec());
  PLUMB_CHECK(w.rank() == 2, "linear: w is {}; it must be (OUT, IN)", w.spec());
  PLUMB_CHECK(is_floating(x.dtype()) && x.dtype() == w.dtype(),
              "linear: x is {} and w is {}; both must be of one floating dtype", x.dtype(), w.dtype());
  PLUMB_CHECK(x.shape()[-1] == w.shape()[1], "linear: w {} takes {} inputs, x {} has {}", w.shape(), w.shape()[1],
              x.shape(), x.shape()[-1]);
  PLUMB_CHECK(!b || b.spec() == TensorSpec(Shape{w.shape()[0]}, w.dtype()), "linear: b is {}; it must be {} ({})",
              b ? to_string(b.spec()) : "", w.dtype(), w.shape()[0]);
}

// Checks that dimension `dim` of dy equals the first dimension of t, the other factor.
void check_gradient(const char* op, const char* name, const Tensor& dy, const Tensor& t, int dim) {
  PLUMB_CHECK(dy && t, "{}: {} is an empty tensor", op, dy ? name : "dy");
  PLUMB_CHECK(dy.rank() == 2 && t.rank() == 2 && dy.dtype() == t.dtype() && dy.shape()[dim] == t.shape()[0],
              "{}: dy is {} and {} is {}; they do not fit together", op, dy.spec(), name, t.spec());
}

using Gradients = std::array<Tensor, 3>;  // with respect to x, w and b

Gradients backward(const Tensor& dy, const Tensor& x, const Tensor& w, bool needs_db) {
  Tensor db = needs_db ? sum(dy, {0}) : Tensor();
  if (detail::ctx.recording) return {linear_backward_input(dy, w), linear_backward_weight(dy, x), std::move(db)};
  auto [dx, dw] = run<LinearBackward>({}, {dy, x, w}, {x.spec(), w.spec()});
  return {std::move(dx), std::move(dw), std::move(db)};
}

// Each by itself, if it is needed; a tensor that only the others are computed from may be empty.
Gradients one_by_one(const Tensor& dy, const Tensor& x, const Tensor& w, const Needs<3>& needs) {
  return {needs[0] ? linear_backward_input(dy, w) : Tensor(), needs[1] ? linear_backward_weight(dy, x) : Tensor(),
          needs[2] ? sum(dy, {0}) : Tensor()};
}

// The same on a device, where the product that computes dw also sums dy.
Gradients backward_there(const Tensor& dy, const Tensor& x, const Tensor& w, const Needs<3>& needs) {
  if (detail::ctx.recording || !needs[1] || !needs[2]) return one_by_one(dy, x, w, needs);
  Tensor dx = needs[0] ? linear_backward_input(dy, w) : Tensor();
  const TensorSpec of_w(Shape{dy.shape()[1], x.shape()[1]}, dy.dtype()), of_b(Shape{dy.shape()[1]}, dy.dtype());
  auto [dw, db] = run<LinearBackwardWeightBias>({}, {dy, x}, {of_w, of_b});
  return {std::move(dx), std::move(dw), std::move(db)};
}

constexpr char kName[] = "linear";

// The node of a layer whose input x is the output of a ReLU with a mask. If nobody asks for x's gradient, the product
// that would compute it computes the gradient of the ReLU's input instead.
class AfterReluNode final : public detail::Node {
 public:
  AfterReluNode(detail::ReluNode* relu, const Tensor& x, const Tensor& w, const Tensor& b)
      : relu_(relu), to_x_(x.node), to_w_(w.node), to_b_(b.node), w_(std::in_place, w, kName) {
    bytes = sizeof *this;
    if (to_w_) x_.emplace(x, kName);
    for (const auto* to : {&to_x_, &to_w_, &to_b_}) {
      if (*to) detail::number_after(to->get());
    }
  }
  void backward(const Tensor& dy, detail::GradientSink& sink) override {
    if (!w_) detail::fail_released();
    const auto wants = [&](const detail::Ref<detail::Node>& to) { return to && sink.wants(to.get()); };
    const bool passes = wants(to_x_) && sink.passes(relu_);
    const Needs<3> needs{wants(to_x_) && !passes, wants(to_w_), wants(to_b_)};
    auto [dx, dw, db] = backward_there(dy, needs[1] ? (*x_)() : Tensor(), needs[0] ? (*w_)() : Tensor(), needs);
    if (passes) {
      Tensor dz = run<LinearBackwardInputMask>({}, {dy, (*w_)(), relu_->mask()}, relu_->spec);
      sink.give(relu_->input().get(), std::move(dz), kName);
    }
    sink.give(relu_, std::move(dx), kName);
    sink.give(to_w_.get(), std::move(dw), kName);
    sink.give(to_b_.get(), std::move(db), kName);
  }
  void append_inputs(detail::PoolVector<detail::Node*>& inputs) const override {
    for (const auto* to : {&to_x_, &to_w_, &to_b_}) detail::append(inputs, *to);
  }
  void release() override {
    x_.reset();
    w_.reset();
  }

 private:
  detail::ReluNode* relu_;  // the same node as to_x_, with its own type
  detail::Ref<detail::Node> to_x_, to_w_, to_b_;
  std::optional<SavedTensor> x_, w_;
};

Tensor with_gradients(Tensor y, const Tensor& x, const Tensor& w, const Tensor& b) {
  const bool is_free = detail::ctx.policy.algorithm == 0;  // a named algorithm is one of a single product
  const bool is_host = x.device().is_cpu();                // there a kernel for both products pays off
  detail::ReluNode* const relu = is_host || !is_free || !detail::ctx.recording ? nullptr : detail::relu_behind(x);
  if (relu) {
    detail::attach<AfterReluNode>(y, relu, x, w, b);
    return y;
  }
  if (!is_host && w.requires_grad() && b && b.requires_grad()) {
    const Tensor none;
    return record_joint<3>(
        std::move(y), {&x, &w, &b},
        [x = SavedTensor(x, kName), w = SavedTensor(x.requires_grad() ? w : none, kName)](const Tensor& dy,
                                                                                          const Needs<3>& needs) {
          return backward_there(dy, needs[1] ? x() : Tensor(), needs[0] ? w() : Tensor(), needs);
        },
        kName);
  }
  const bool is_vendors = detail::ctx.policy.kernels == KernelSet::kVendor;  // the vendor has none for both products
  if (is_host && is_free && !is_vendors && x.requires_grad() && w.requires_grad() &&
      detail::prefers_joint_backward(x.spec(), w.spec())) {
    return record_joint<3>(
        std::move(y), {&x, &w, &b},
        [x = SavedTensor(x, kName), w = SavedTensor(w, kName)](const Tensor& dy, const Needs<3>& needs) {
          if (needs[0] && needs[1]) return backward(dy, x(), w(), needs[2]);
          return one_by_one(dy, needs[1] ? x() : Tensor(), needs[0] ? w() : Tensor(), needs);
        },
        kName);
  }
  return record(
      std::move(y),
      wrt(x, kName, [w = SavedTensor(w, kName)](const Tensor& dy) { return linear_backward_input(dy, w()); }),
      wrt(w, kName, [x = SavedTensor(x, kName)](const Tensor& dy) { return linear_backward_weight(dy, x()); }),
      wrt(b, kName, [](const Tensor& dy) { return sum(dy, {0}); }));
}

// Whether a layer's ReLU stores a mask for the next layer's backward.
bool keeps_mask(const Tensor& x, const Tensor& w, const Tensor& b) {
  return !x.device().is_cpu() && detail::ctx.recording && detail::ctx.policy.algorithm == 0 &&
         (x.requires_grad() || w.requires_grad() || b.requires_grad());
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b, Activation activation) {
  check(x, w, b);
  detail::check_activation("linear", activation);
  if (x.rank() != 2) {
    const Shape wide = x.shape().with(-1, w.shape()[0]);
    const int64_t rows = x.shape().with(-1, 1).numel();
    return reshape(linear(reshape(x, Shape{rows, w.shape()[1]}), w, b, activation), wide);
  }
  const TensorSpec spec(Shape{x.shape()[0], w.shape()[0]}, x.dtype());
  if (activation == Activation::kRelu && keeps_mask(x, w, b)) {
    const TensorSpec specs[] = {spec, detail::mask_of(spec)};
    auto [y, mask] = b ? run<LinearForwardMask>({}, {x, w, b}, specs) : run<LinearForwardMask>({}, {x, w}, specs);
    return detail::record_relu(with_gradients(std::move(y), x, w, b), std::move(mask));
  }
  const LinearParams p{activation};
  Tensor y = b ? run<LinearForward>(p, {x, w, b}, spec) : run<LinearForward>(p, {x, w}, spec);
  return detail::record_activation(with_gradients(std::move(y), x, w, b), activation);
}

Tensor linear_backward_input(const Tensor& dy, const Tensor& w) {
  check_gradient("linear_backward_input", "w", dy, w, 1);
  const TensorSpec dx(Shape{dy.shape()[0], w.shape()[1]}, dy.dtype());
  return record(run<LinearBackwardInput>({}, {dy, w}, dx),
                wrt(dy, [w = SavedTensor(w)](const Tensor& g) { return linear(g, w()); }),
                wrt(w, [dy = SavedTensor(dy)](const Tensor& g) { return linear_backward_weight(dy(), g); }));
}

Tensor linear_backward_weight(const Tensor& dy, const Tensor& x) {
  check_gradient("linear_backward_weight", "x", dy, x, 0);
  const TensorSpec dw(Shape{dy.shape()[1], x.shape()[1]}, dy.dtype());
  return record(run<LinearBackwardWeight>({}, {dy, x}, dw),
                wrt(dy, [x = SavedTensor(x)](const Tensor& g) { return linear(x(), g); }),
                wrt(x, [dy = SavedTensor(dy)](const Tensor& g) { return linear_backward_input(dy(), g); }));
}

}  // namespace plumb
