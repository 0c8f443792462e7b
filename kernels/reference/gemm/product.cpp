#include "kernels/reference/gemm/product.h"

#include <Eigen/Core>

#include "kernels/cpu/element.h"
#include "kernels/reference/elements.h"

namespace plumb::reference {
namespace {

template <class T>
class ProductKernel final : public Kernel {
 public:
  explicit ProductKernel(const ProductSpec& spec)
      : Kernel(kByEigen ? "reference:eigen" : "reference:loops"), s_(spec) {}
  void run(const Launch& l) const override {
    for (size_t i = 0; i < s_.a_offsets.size(); ++i) {
      const auto* a = static_cast<const T*>(l.in[0]) + s_.a_offsets[i];
      const auto* b = static_cast<const T*>(l.in[1]) + s_.b_offsets[i];
      const auto* bias = s_.bias ? static_cast<const T*>(l.in[2]) : nullptr;
      one(a, b, bias, static_cast<T*>(l.out[0]) + static_cast<int64_t>(i) * s_.m * s_.n);
    }
  }

 private:
  static constexpr bool kByEigen = std::is_floating_point_v<T>;
  using Stride = Eigen::InnerStride<Eigen::Dynamic>;
  using Vector = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>, 0, Stride>;

  void one(const T* a, const T* b, const T* bias, T* c) const {
    for (int64_t i = 0; i < s_.m; ++i) {
      for (int64_t j = 0; j < s_.n; ++j) {
        double sum = bias ? static_cast<double>(cpu::load(bias + j)) : 0.0;
        if constexpr (kByEigen) {
          const Vector row(a + (s_.transpose_a ? i : i * s_.k), s_.k, Stride(s_.transpose_a ? s_.m : 1));
          const Vector column(b + (s_.transpose_b ? j * s_.k : j), s_.k, Stride(s_.transpose_b ? 1 : s_.n));
          sum += row.template cast<double>().dot(column.template cast<double>());
        } else {
          for (int64_t q = 0; q < s_.k; ++q) {
            sum += static_cast<double>(cpu::load(a + (s_.transpose_a ? q * s_.m + i : i * s_.k + q))) *
                   static_cast<double>(cpu::load(b + (s_.transpose_b ? j * s_.k + q : q * s_.n + j)));
          }
        }
        if (s_.activation == Activation::kRelu && sum < 0) sum = 0;
        c[i * s_.n + j] = reference::rounded<T>(sum);
      }
    }
  }
  ProductSpec s_;
};

}  // namespace

std::unique_ptr<Kernel> product_kernel(const ProductSpec& spec) {
  std::unique_ptr<Kernel> kernel;
  cpu::dispatch_compute(spec.dtype, [&]<class T>() { kernel = std::make_unique<ProductKernel<T>>(spec); });
  return kernel;
}

}  // namespace plumb::reference
