#include "kernels/reference/gemm/product.h"

#include <Eigen/Core>

#include "kernels/cpu/element.h"
#include "kernels/reference/elements.h"

namespace plumb::reference {
namespace {

template <class T>
constexpr bool kByEigen = std::is_floating_point_v<T>;

template <class T>
void multiply(const ProductSpec& s, const T* a, const T* b, const T* bias, T* c) {
  using Stride = Eigen::InnerStride<Eigen::Dynamic>;
  using Vector = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>, 0, Stride>;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = bias ? static_cast<double>(cpu::load(bias + j)) : 0.0;
      if constexpr (kByEigen<T>) {
        const Vector row(a + (s.transpose_a ? i : i * s.k), s.k, Stride(s.transpose_a ? s.m : 1));
        const Vector column(b + (s.transpose_b ? j * s.k : j), s.k, Stride(s.transpose_b ? 1 : s.n));
        sum += row.template cast<double>().dot(column.template cast<double>());
      } else {
        for (int64_t q = 0; q < s.k; ++q) {
          sum += static_cast<double>(cpu::load(a + (s.transpose_a ? q * s.m + i : i * s.k + q))) *
                 static_cast<double>(cpu::load(b + (s.transpose_b ? j * s.k + q : q * s.n + j)));
        }
      }
      if (s.activation == Activation::kRelu && sum < 0) sum = 0;
      c[i * s.n + j] = reference::rounded<T>(sum);
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> product_kernel(const ProductSpec& spec) {
  std::unique_ptr<Kernel> kernel;
  cpu::dispatch_compute(spec.dtype, [&]<class T>() {
    kernel = make_kernel(kByEigen<T> ? "reference:eigen" : "reference:loops", [s = spec](const Launch& l) {
      const auto *a = static_cast<const T*>(l.in[0]), *b = static_cast<const T*>(l.in[1]);
      const auto* bias = s.bias ? static_cast<const T*>(l.in[2]) : nullptr;
      auto* c = static_cast<T*>(l.out[0]);
      for (size_t i = 0; i < s.a_offsets.size(); ++i, c += s.m * s.n)
        multiply(s, a + s.a_offsets[i], b + s.b_offsets[i], bias, c);
    });
  });
  return kernel;
}

}  // namespace plumb::reference
