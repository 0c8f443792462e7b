#include "kernels/cpu/gemm/packed_gemm.h"

#include "core/memory.h"
#include "kernels/cpu/gemm/batch_offset.h"
#include "kernels/cpu/gemm/panels.h"

namespace plumb::cpu {
namespace {

// Floats of a workspace, one piece behind the other.
class Pieces {
 public:
  /// The offset of a new piece.
  int64_t add(int64_t floats) {
    const int64_t at = end_;
    end_ += static_cast<int64_t>(detail::aligned(static_cast<size_t>(floats) * sizeof(float)) / sizeof(float));
    return at;
  }
  size_t bytes() const { return static_cast<size_t>(end_) * sizeof(float); }

 private:
  int64_t end_ = 0;
};

template <class T>
const float* widened(float* to, const T* from, int64_t n) {
  std::transform(from, from + n, to, [](T x) { return static_cast<float>(x); });
  return to;
}

template <class T>
std::unique_ptr<Kernel> make(const Product& p, bool relu) {
  constexpr bool is_f32 = kInWord<T> == 1;
  const int64_t batch = p.batch_c.numel();
  const PackedProducts products(batch, p.m, p.n, ceil_div(p.k, kInWord<T>), p.threads);
  const BatchOffsets at(p);
  Pieces pieces;
  const int64_t panels = pieces.add(products.floats()), bias = pieces.add(!is_f32 && p.bias ? p.n : 0);
  const bool has_sums = !is_f32 && products.keeps_sums();
  const int64_t sums = pieces.add(has_sums ? batch * p.m * p.n : 0);
  auto kernel = make_kernel("plumb:packed_gemm", [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const T*>(l.in[i]); };
    auto* memory = static_cast<float*>(l.workspace);
    const float* of_columns = nullptr;
    if (p.bias && is_f32) of_columns = static_cast<const float*>(l.in[2]);
    if (p.bias && !is_f32) of_columns = widened(memory + bias, in(2), p.n);
    products.run(memory + panels, [&](int64_t i, const PackedProduct& one, float* of_one) {
      const auto number = static_cast<size_t>(i);
      const T *a = in(0) + at.a[number], *b = in(1) + at.b[number];
      const MatrixPanels<kBlockRows, T> rows({a, p.transpose_a ? p.m : 1, p.transpose_a ? 1 : p.k, p.k}, p.m);
      const MatrixPanels<kBlockColumns, T> columns({b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1, p.k}, p.n);
      PackedResult c{static_cast<T*>(l.out[0]) + i * p.m * p.n, {p.n}, of_columns, relu};
      if (!is_f32) c.sums = has_sums ? memory + sums + i * p.m * p.n : nullptr;
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
  return dispatch_words(p.dtype, [&]<class T>() { return make<T>(p, relu); });
}

}  // namespace plumb::cpu
