// The ReLU that conv2d and linear fuse, with every kernel: what is not a number stays so.
#include <cmath>
#include <limits>

#include "dispatch/policy.h"
#include "ops/conv2d.h"
#include "ops/linear.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

int64_t count_nans(const Tensor& t) {
  int64_t n = 0;
  for (const double v : test::to_doubles(t)) n += std::isnan(v);
  return n;
}

Tensor with_nan(const Tensor& plain, DType dtype, Layout layout) {
  std::vector<double> values = test::to_doubles(plain);
  values[values.size() / 2] = static_cast<double>(kNan);
  return test::converted(test::from_doubles(values, plain.spec()), dtype, layout);
}

TEST(FusedRelu, KeepsNanInEveryKernelOfConv2d) {
  const Tensor x = test::random_tensor(TensorSpec(Shape{2, 16, 9, 9}), 1);
  const Tensor w = test::random_tensor(TensorSpec(Shape{16, 16, 3, 3}), 2);
  Conv2dParams plain{.padding = {1, 1, 1, 1}}, fused = plain;
  fused.activation = Activation::kRelu;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const Layout layout : kPublicLayouts) {
      for (const char* algorithm : {"direct", "blocked", "winograd_f2x2", "winograd_f4x4", "reference"}) {
        const PolicyScope policy(Policy{.algorithm = algorithm_id(algorithm)});
        const Tensor in = with_nan(x, dtype, layout), weight = test::converted(w, dtype, Layout::kNchw);
        const int64_t expected = count_nans(conv2d(in, weight, plain));
        ASSERT_GT(expected, 0);
        EXPECT_EQ(count_nans(conv2d(in, weight, fused)), expected)
            << to_string(dtype) << " " << to_string(layout) << " " << algorithm;
      }
    }
  }
}

TEST(FusedRelu, KeepsNanInEveryKernelOfLinear) {
  const Tensor w = test::random_tensor(TensorSpec(Shape{33, 40}), 2);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int64_t rows : {1, 31}) {
      for (const char* algorithm : {"matmul", "gemm", "packed_gemm", "inner_product", "reference"}) {
        const PolicyScope policy(Policy{.algorithm = algorithm_id(algorithm)});
        const Tensor x = with_nan(test::random_tensor(TensorSpec(Shape{rows, 40}), 1), dtype, Layout::kNchw);
        EXPECT_EQ(count_nans(linear(x, test::converted(w, dtype, Layout::kNchw), Tensor(), Activation::kRelu)), 33)
            << to_string(dtype) << " " << rows << " " << algorithm;
      }
    }
  }
}

}  // namespace
}  // namespace plumb
