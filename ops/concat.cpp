#include "ops/concat.h"

#include "dispatch/gate.h"
#include "kernels/slice.h"
#include "ops/slice.h"

namespace plumb {
namespace {

// The spec of y; counts a negative dim from the front.
TensorSpec concat_output(std::span<const Tensor> x, int& dim) {
  PLUMB_CHECK(!x.empty(), "concat: the list of tensors is empty");
  for (size_t i = 0; i < x.size(); ++i) PLUMB_CHECK(x[i], "concat: tensor {} of {} is empty", i, x.size());
  const TensorSpec& first = x[0].spec();
  PLUMB_CHECK(dim >= -first.rank() && dim < first.rank(), "concat: dimension {} of a tensor {} does not exist", dim,
              first.shape);
  if (dim < 0) dim += first.rank();
  int64_t extent = 0;
  for (const Tensor& t : x) {
    const TensorSpec& s = t.spec();
    PLUMB_CHECK(s.dtype == first.dtype && s.layout == first.layout,
                "concat: tensors are {} and {}; convert them to one dtype and layout with to", first, s);
    PLUMB_CHECK(s.rank() == first.rank() && s.shape.with(dim, first.shape[dim]) == first.shape,
                "concat: tensors have shapes {} and {}, which may differ in dimension {} only", first.shape, s.shape,
                dim);
    extent += s.shape[dim];
  }
  return first.with(first.shape.with(dim, extent));
}

// One edge for each input; the number of inputs is known only at run time.
class ConcatNode final : public detail::Node {
 public:
  ConcatNode(std::span<const Tensor> x, int dim) : dim_(dim) {
    bytes = sizeof *this;
    for (const Tensor& t : x) {
      edges_.push_back({t.node, t.shape()});
      if (t.node) detail::number_after(t.node.get());
    }
  }
  void backward(const Tensor& dy, detail::GradientSink& sink) override {
    static constexpr int64_t kZeros[kMaxRank] = {};
    Shape begin(std::span(kZeros, static_cast<size_t>(dy.rank())));
    for (const Edge& e : edges_) {
      if (e.to && sink.wants(e.to.get())) sink.give(e.to.get(), slice(dy, begin, e.shape), "concat");
      begin = begin.with(dim_, begin[dim_] + e.shape[dim_]);
    }
  }
  void append_inputs(detail::PoolVector<detail::Node*>& inputs) const override {
    for (const Edge& e : edges_) detail::append(inputs, e.to);
  }

 private:
  struct Edge {
    detail::Ref<detail::Node> to;
    Shape shape;
  };
  int dim_;
  detail::PoolVector<Edge> edges_;
};

}  // namespace

Tensor concat(std::span<const Tensor> x, int dim) {
  const TensorSpec spec = concat_output(x, dim);
  if (x.size() == 1) return x[0];
  detail::PoolVector<detail::In> inputs;
  bool needs_gradient = false;
  for (const Tensor& t : x) {
    inputs.push_back({t.value.get()});
    needs_gradient |= t.requires_grad();
  }
  Tensor y = run<Concat>({dim}, inputs, spec);
  if (detail::ctx.recording && needs_gradient) detail::attach<ConcatNode>(y, x, dim);
  return y;
}

}  // namespace plumb
