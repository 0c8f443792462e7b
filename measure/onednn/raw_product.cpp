#include "measure/onednn/steps.h"

namespace plumb::measure {
namespace {

using raw::memory;

// A row-major (..., rows, columns) tensor, or its transpose; with `any`, in the format that oneDNN chooses.
memory::desc matrix(const TensorSpec& s, bool transposed, bool any = false) {
  memory::dims dims(s.shape.begin(), s.shape.end());
  const Strides of = strides_of(s);
  memory::dims strides(of.of, of.of + s.rank());
  const size_t last = dims.size() - 1;
  if (transposed) {
    std::swap(dims[last], dims[last - 1]);
    std::swap(strides[last], strides[last - 1]);
  }
  if (any) return {dims, cpu::dnnl_dtype(s.dtype), memory::format_tag::any};
  return {dims, cpu::dnnl_dtype(s.dtype), strides};
}

// `any_weights`: b has the format that oneDNN chooses.
std::unique_ptr<RawRun> matmul(const RawMatmul& m, bool any_weights) {
  const memory::desc a = matrix(m.a, m.transpose_a), b = matrix(m.b, m.transpose_b, any_weights),
                     y = matrix(m.y, false);
  const memory::desc bias = raw::bias(m.with_bias, m.y.shape[m.y.rank() - 1], m.y.dtype, m.y.rank());
  const auto pd = cpu::primitive_desc<dnnl::matmul>(raw::attr_of(m.activation), a, b, bias, y);
  const memory::desc x = pd.src_desc(), w = pd.weights_desc();  // already in the formats that the primitive wants
  return raw::steps_of<dnnl::matmul>(pd, {{DNNL_ARG_SRC, x, x}, {DNNL_ARG_WEIGHTS, w, w}}, bias, {DNNL_ARG_DST, y, y},
                                     false);
}

class Gemm final : public RawRun {
 public:
  explicit Gemm(const RawMatmul& m) : m_(m), memory_("sgemm") {
    implementation_ = memory_.implementation();
    a_ = pointer(m.a), b_ = pointer(m.b), c_ = pointer(m.y);
  }
  void run() override {
    const int64_t rows = m_.y.shape[0], columns = m_.y.shape[1], depth = m_.transpose_a ? m_.a.shape[0] : m_.a.shape[1];
    dnnl_sgemm(m_.transpose_a ? 'T' : 'N', m_.transpose_b ? 'T' : 'N', rows, columns, depth, 1, a_, m_.a.shape[1], b_,
               m_.b.shape[1], 0, c_, columns);
  }
  void convert() override {}

 private:
  float* pointer(const TensorSpec& s) {
    return static_cast<float*>(memory_.fresh(cpu::dnnl_desc(s)).get_data_handle());
  }
  RawMatmul m_;
  raw::Steps memory_;
  float *a_, *b_, *c_;
};

std::unique_ptr<RawRun> gemm(const RawMatmul& m) {
  const bool is_product = !m.with_bias && m.activation == Activation::kNone;
  if (m.y.dtype != DType::kF32 || m.y.rank() != 2 || !is_product) return nullptr;
  return std::make_unique<Gemm>(m);
}

std::unique_ptr<RawRun> inner_product(const RawLinear& l, bool as_they_are, bool convert) {
  const memory::desc b = raw::bias(l.with_bias, l.y.shape[1], l.y.dtype);
  const raw::Descs own{cpu::dnnl_desc(l.x), cpu::dnnl_desc(l.w), b, cpu::dnnl_desc(l.y)};
  const raw::Descs asked{as_they_are ? own.x : cpu::dnnl_any(l.x), cpu::dnnl_any(l.w), b,
                         as_they_are ? own.y : cpu::dnnl_any(l.y)};
  using Forward = dnnl::inner_product_forward;
  const auto forward = cpu::primitive_desc<Forward>(raw::attr_of(l.activation), dnnl::prop_kind::forward_training,
                                                    asked.x, asked.w, asked.b, asked.y);
  const auto backward = [&]<class Backward>() {
    return cpu::backward_desc<Backward>(dnnl::primitive_attr(), forward, asked.x, asked.w, asked.y);
  };
  return raw::layer<Forward, dnnl::inner_product_backward_data, dnnl::inner_product_backward_weights>(
      l.direction, own, forward, backward, convert);
}

// Writes a direction of linear as a product of matrices.
RawMatmul as_matmul(const RawLinear& l) {
  switch (l.direction) {
    case Direction::kForward: return {l.x, l.w, l.y, false, true, l.with_bias, l.activation};
    case Direction::kBackwardInput: return {l.y, l.w, l.x, false, false};
    case Direction::kBackwardWeight: return {l.y, l.x, l.w, true, false};
  }
  return {};
}

class OneAfterTheOther final : public RawRun {
 public:
  OneAfterTheOther(std::unique_ptr<RawRun> first, std::unique_ptr<RawRun> second)
      : first_(std::move(first)), second_(std::move(second)) {
    implementation_ = first_->implementation() + " " + second_->implementation();
    conversions_ = first_->conversions() + second_->conversions();
  }
  void run() override {
    first_->run();
    second_->run();
  }
  void convert() override {
    first_->convert();
    second_->convert();
  }

 private:
  std::unique_ptr<RawRun> first_, second_;
};

// Runs make(l) for both gradients; null if either is null.
template <class Make>
std::unique_ptr<RawRun> both_gradients(const RawLinearBackward& l, const Make& make) {
  std::unique_ptr<RawRun> dx = make(RawLinear{Direction::kBackwardInput, l.x, l.w, l.y});
  std::unique_ptr<RawRun> dw = make(RawLinear{Direction::kBackwardWeight, l.x, l.w, l.y});
  if (!dx || !dw) return nullptr;
  return std::make_unique<OneAfterTheOther>(std::move(dx), std::move(dw));
}

}  // namespace

std::unique_ptr<RawRun> raw_same(const RawMatmul& m, std::string_view algorithm) {
  if (algorithm == "matmul") return raw::declining([&] { return matmul(m, false); });
  if (algorithm == "gemm") return gemm(m);
  return nullptr;
}

std::unique_ptr<RawRun> raw_same(const RawLinear& l, std::string_view algorithm) {
  const auto prepared = [&l] { return inner_product(l, true, true); };
  const RawMatmul m = as_matmul(l);
  if (algorithm == "inner_product") return raw::declining(prepared);
  if (algorithm == "blocked") return raw::fastest({prepared, [&m] { return matmul(m, false); }});
  return raw_same(m, algorithm);
}

std::unique_ptr<RawRun> raw_same(const RawLinearBackward& l, std::string_view algorithm) {
  return both_gradients(l, [&](const RawLinear& one) { return raw_same(one, algorithm); });
}

std::unique_ptr<RawRun> raw_best(const RawMatmul& m) {
  return raw::fastest({[&m] { return matmul(m, true); }, [&m] { return matmul(m, false); }, [&m] { return gemm(m); }});
}

std::unique_ptr<RawRun> raw_best(const RawLinear& l) {
  const RawMatmul m = as_matmul(l);
  return raw::fastest({[&l] { return inner_product(l, false, false); }, [&m] { return matmul(m, true); },
                       [&m] { return matmul(m, false); }, [&m] { return gemm(m); }});
}

std::unique_ptr<RawRun> raw_best(const RawLinearBackward& l) {
  return both_gradients(l, [](const RawLinear& one) { return raw_best(one); });
}

}  // namespace plumb::measure
