#include "kernels/cpu/gemm/packed_gemm.h"

#include "kernels/cpu/gemm/amx_panels.h"
#include "kernels/cpu/gemm/batch_offset.h"
#include "kernels/cpu/gemm/pieces.h"

namespace plumb::cpu {
namespace {

template <class Rows>
std::unique_ptr<Kernel> make(const Product& p, bool relu) {
  using T = typename Rows::Element;
  constexpr bool is_f32 = kInWord<T> == 1;
  const int64_t batch = p.batch_c.numel();
  const PackedProducts products(batch, p.m, p.n, ceil_div(p.k, kInWord<T>), p.threads, Rows::kForm);
  const BatchOffsets at(p);
  Pieces pieces;
  const size_t panels = pieces.add<float>(products.floats());
  const size_t bias = pieces.add<float>(!is_f32 && p.bias ? p.n : 0);
  const bool has_sums = !is_f32 && products.keeps_sums();
  const size_t sums = pieces.add<float>(has_sums ? batch * p.m * p.n : 0);
  auto kernel = make_kernel(product_name<Rows>("plumb:packed_gemm"), [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const T*>(l.in[i]); };
    const float* of_columns = nullptr;
    if (p.bias) of_columns = widened(piece_at<float>(l, bias), in(2), p.n);
    products.run(piece_at<float>(l, panels), [&](int64_t i, const PackedProduct& one, float* of_one) {
      const auto number = static_cast<size_t>(i);
      const T *a = in(0) + at.a[number], *b = in(1) + at.b[number];
      const Rows rows({a, p.transpose_a ? p.m : 1, p.transpose_a ? 1 : p.k, p.k}, p.m);
      const MatrixPanels<kBlockColumns, T> columns({b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1, p.k}, p.n);
      PackedResult c{static_cast<T*>(l.out[0]) + i * p.m * p.n, {p.n}, of_columns, relu};
      if (!is_f32) c.sums = has_sums ? piece_at<float>(l, sums) + i * p.m * p.n : nullptr;
      c.stream = is_large<T>(batch * p.m * p.n);
      one.run(rows, columns, c, of_one);
    });
  });
  kernel->info().workspace_bytes = pieces.bytes();
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> packed_gemm_kernel(const Product& product, bool relu) {
  Product p = product;
  if (!p.transpose_a && p.batch_b.numel() == 1) {  // one product of all rows
    p.m *= p.batch_a.numel();
    p.batch_a = p.batch_b = p.batch_c = {};
  }
  return dispatch_rows(p.dtype, [&]<class Rows>() { return make<Rows>(p, relu); });
}

}  // namespace plumb::cpu
