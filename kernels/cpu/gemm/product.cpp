#include "kernels/cpu/gemm/product.h"

#include <atomic>

#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

memory::dims dims_of(const Shape& batch, int64_t rows, int64_t columns) {
  memory::dims d(batch.begin(), batch.end());
  d.push_back(rows);
  d.push_back(columns);
  return d;
}

// The description of a row-major (..., rows, columns) tensor, or of the transpose of that memory.
MemoryDesc matrix(DType t, const Shape& batch, int64_t rows, int64_t columns, bool transposed) {
  const memory::dims dims = dims_of(batch, rows, columns);
  memory::dims strides(dims.size());
  strides[dims.size() - 1] = transposed ? rows : 1;
  strides[dims.size() - 2] = transposed ? 1 : columns;
  int64_t step = rows * columns;
  for (int d = batch.rank() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = step;
    step *= batch[d];
  }
  return {dims, dnnl_dtype(t), strides};
}

// The number of columns of c below which a thread has too little work.
constexpr int64_t kColumnsAThread = 64;

bool is_gemm(const Product& p) { return p.dtype == DType::kF32 && p.batch_c.numel() == 1 && !p.bias; }

// Computes the columns [begin, end) of c.
dnnl_status_t gemm(const Product& p, const Launch& l, int64_t begin, int64_t end) {
  const auto *a = static_cast<const float*>(l.in[0]), *b = static_cast<const float*>(l.in[1]);
  const int64_t lda = p.transpose_a ? p.m : p.k, ldb = p.transpose_b ? p.k : p.n;
  return dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, end - begin, p.k, 1.0f, a, lda,
                    b + begin * (p.transpose_b ? p.k : 1), ldb, 0.0f, static_cast<float*>(l.out[0]) + begin, p.n);
}

}  // namespace

std::unique_ptr<Kernel> matmul_kernel(const Product& p) {
  const MemoryDesc a = matrix(p.dtype, p.batch_a, p.m, p.k, p.transpose_a);
  const MemoryDesc b = matrix(p.dtype, p.batch_b, p.k, p.n, p.transpose_b);
  const MemoryDesc c = matrix(p.dtype, p.batch_c, p.m, p.n, false);
  Shape one = p.batch_c;
  for (int d = 0; d < one.rank(); ++d) one = one.with(d, 1);
  const MemoryDesc bias = p.bias ? matrix(p.dtype, one, 1, p.n, false) : MemoryDesc();
  const dnnl::primitive_attr attr = dnnl_attr(p.math);
  const auto pd =
      p.bias ? primitive_desc<dnnl::matmul>(attr, a, b, bias, c) : primitive_desc<dnnl::matmul>(attr, a, b, c);
  return single_primitive<dnnl::matmul>(pd,
                                        {{DNNL_ARG_SRC, a, DnnlArg::kIn, 0},
                                         {DNNL_ARG_WEIGHTS, b, DnnlArg::kIn, 1},
                                         {DNNL_ARG_BIAS, bias, DnnlArg::kIn, 2},
                                         {DNNL_ARG_DST, c, DnnlArg::kOut, 0}},
                                        "onednn:matmul:");
}

std::unique_ptr<Kernel> gemm_kernel(const Product& p) {
  if (!is_gemm(p)) return nullptr;
  return make_kernel("onednn:sgemm", [p](const Launch& l) { check_ran("onednn:sgemm", gemm(p, l, 0, p.n)); });
}

std::unique_ptr<Kernel> gemm_columns_kernel(const Product& p) {
  if (!is_gemm(p) || p.threads == 1 || p.n < kColumnsAThread * p.threads) return nullptr;
  return make_kernel("onednn:sgemm:columns", [p](const Launch& l) {
    std::atomic<dnnl_status_t> status = dnnl_success;  // an exception must not leave a parallel loop
    parallel_for(p.n, kColumnsAThread, 16, [&](int64_t begin, int64_t end) {
      if (const dnnl_status_t said = gemm(p, l, begin, end); said != dnnl_success) status = said;
    });
    check_ran("onednn:sgemm:columns", status);
  });
}

Product layer_product(InnerProduct which, int64_t rows, const TensorSpec& w) {
  const int64_t out = w.shape[0], in = w.shape[1];
  Product p{.dtype = w.dtype, .batch_a = {}, .batch_b = {}, .batch_c = {}, .m = rows, .n = out, .k = in};
  switch (which) {
    case InnerProduct::kForward: p.transpose_b = true; break;
    case InnerProduct::kBackwardInput: p.n = in, p.k = out; break;
    case InnerProduct::kBackwardWeight: p.m = out, p.n = in, p.k = rows, p.transpose_a = true; break;
  }
  return p;
}

std::unique_ptr<Kernel> inner_product_kernel(InnerProduct which, const TensorSpec& x, const TensorSpec& w,
                                             const TensorSpec& y, bool bias, MathMode math) {
  using Forward = dnnl::inner_product_forward;
  using BackwardInput = dnnl::inner_product_backward_data;
  using BackwardWeight = dnnl::inner_product_backward_weights;
  const MemoryDesc xd = dnnl_desc(x), wd = dnnl_desc(w), yd = dnnl_desc(y), any = dnnl_any(w);
  const MemoryDesc bd = bias ? MemoryDesc({y.shape[1]}, dnnl_dtype(y.dtype), memory::format_tag::a) : MemoryDesc();
  const auto forward = primitive_desc<Forward>(dnnl_attr(math), dnnl::prop_kind::forward_training, xd, any, bd, yd);
  const std::string prefix = "onednn:inner_product:";
  switch (which) {
    case InnerProduct::kForward:
      return converting_kernel<Forward>(
          forward,
          {{DNNL_ARG_SRC, xd, xd}, {DNNL_ARG_WEIGHTS, wd, forward.weights_desc(), true}, {DNNL_ARG_BIAS, bd, bd}},
          {DNNL_ARG_DST, yd, yd}, prefix);
    case InnerProduct::kBackwardInput: {
      const auto pd = backward_desc<BackwardInput>(dnnl_attr(math), forward, xd, any, yd);
      return converting_kernel<BackwardInput>(
          pd, {{DNNL_ARG_DIFF_DST, yd, yd}, {DNNL_ARG_WEIGHTS, wd, pd.weights_desc(), true}},
          {DNNL_ARG_DIFF_SRC, xd, xd}, prefix);
    }
    case InnerProduct::kBackwardWeight: {
      const auto pd = backward_desc<BackwardWeight>(dnnl_attr(math), forward, xd, any, yd);
      return converting_kernel<BackwardWeight>(pd, {{DNNL_ARG_DIFF_DST, yd, yd}, {DNNL_ARG_SRC, xd, xd}},
                                               {DNNL_ARG_DIFF_WEIGHTS, wd, pd.diff_weights_desc()}, prefix);
    }
  }
  return nullptr;
}

}  // namespace plumb::cpu
