// What cuBLASLt is asked for: products are done by the definition, from what the library is told of them, on a device
// whose memory is the host's.
#include "kernels/cuda/vendor/cublaslt.h"
#include "dispatch/policy.h"

#include <gtest/gtest.h>

#include "core/runtime.h"
#include "dispatch/gate.h"
#include "kernels/linear.h"
#include "ops/convert.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"
#include "tests/support/scripted.h"

namespace plumb {
namespace {

int proposed, multiplied;
bool has_masks = true;  // epilogues with a mask, in the library that stands in
cublasComputeType_t computed_in;

template <class T>
T of_operation(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name) {
  T v{};
  size_t written = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(d, name, &v, sizeof v, &written), CUBLAS_STATUS_SUCCESS);
  return v;
}
template <class T>
T of_layout(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t name) {
  T v{};
  size_t written = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(l, name, &v, sizeof v, &written), CUBLAS_STATUS_SUCCESS);
  return v;
}

// A matrix by columns, as the library is told of it.
struct Matrix {
  int64_t rows, columns, ld, stride;
  int32_t count;
  cudaDataType_t type;
  explicit Matrix(cublasLtMatrixLayout_t l)
      : rows(of_layout<int64_t>(l, CUBLASLT_MATRIX_LAYOUT_ROWS)),
        columns(of_layout<int64_t>(l, CUBLASLT_MATRIX_LAYOUT_COLS)),
        ld(of_layout<int64_t>(l, CUBLASLT_MATRIX_LAYOUT_LD)),
        stride(of_layout<int64_t>(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)),
        count(of_layout<int32_t>(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)),
        type(of_layout<cudaDataType_t>(l, CUBLASLT_MATRIX_LAYOUT_TYPE)) {}
  int64_t at(int64_t batch, int64_t row, int64_t column) const {
    EXPECT_TRUE(row < rows && column < columns);
    return batch * stride + column * ld + row;
  }
};

double number(double v) { return v; }
double number(Bfloat16 v) { return static_cast<float>(v); }
template <class T>
T rounded(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}

// Bits of one, by columns, each of which takes so many bits.
class Mask {
 public:
  explicit Mask(cublasLtMatmulDesc_t op)
      : bytes_(static_cast<uint8_t*>(of_operation<void*>(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER))),
        ld_(of_operation<int64_t>(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)) {
    EXPECT_EQ(ld_ % 128, 0);
  }
  bool at(int64_t row, int64_t column) const { return *byte(row, column) >> row % 8 & 1; }
  void set(int64_t row, int64_t column, bool bit) {
    uint8_t* const b = byte(row, column);
    *b = static_cast<uint8_t>((*b & ~(1 << row % 8)) | bit << row % 8);
  }

 private:
  uint8_t* byte(int64_t row, int64_t column) const {
    EXPECT_LT(row, ld_);
    return bytes_ + (column * ld_ + row) / 8;
  }
  uint8_t* bytes_;
  int64_t ld_;
};

template <class T>
void multiply(cublasLtMatmulDesc_t op, const void* a_data, const Matrix& a, const void* b_data, const Matrix& b,
              void* d_data, const Matrix& d) {
  const bool ta = of_operation<int32_t>(op, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  const bool tb = of_operation<int32_t>(op, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const auto epilogue = of_operation<uint32_t>(op, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const auto* bias = static_cast<const T*>(of_operation<const void*>(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  const int64_t depth = ta ? a.rows : a.columns;
  ASSERT_EQ(depth, tb ? b.columns : b.rows);
  ASSERT_EQ(d.rows, ta ? a.columns : a.rows);
  ASSERT_EQ(d.columns, tb ? b.rows : b.columns);
  for (int64_t n = 0; n < d.count; ++n) {
    for (int64_t i = 0; i < d.rows; ++i) {
      for (int64_t j = 0; j < d.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += number(static_cast<const T*>(a_data)[ta ? a.at(n, k, i) : a.at(n, i, k)]) *
                 number(static_cast<const T*>(b_data)[tb ? b.at(n, j, k) : b.at(n, k, j)]);
        }
        if (epilogue & CUBLASLT_EPILOGUE_BIAS) sum += number(bias[i]);
        if (epilogue == CUBLASLT_EPILOGUE_RELU_AUX || epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS)
          Mask(op).set(i, j, sum > 0);
        if (epilogue == CUBLASLT_EPILOGUE_DRELU && !Mask(op).at(i, j)) sum = 0;
        if ((epilogue & CUBLASLT_EPILOGUE_RELU) && sum < 0) sum = 0;
        static_cast<T*>(d_data)[d.at(n, i, j)] = rounded<T>(sum);
      }
    }
  }
  if (epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  for (int64_t j = 0; j < d.columns; ++j) {
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += number(static_cast<const T*>(b_data)[tb ? b.at(0, j, k) : b.at(0, k, j)]);
    const_cast<T*>(bias)[j] = rounded<T>(sum);
  }
}

// A GPU to all who ask, with the host's memory, and a library in front of cuBLASLt that needs no device.
class CublasLtTest : public ::testing::Test {
 protected:
  static Device device() {
    static const Device d = add_device(std::make_unique<test::ScriptedRuntime>(
        DeviceProperties{.name = "scripted GPU", .capability = 90, .memory_bytes = size_t{1} << 34, .ordinal = 0}));
    return d;
  }
  void SetUp() override {
    real_ = cuda::cublaslt();
    cuda::CublasLt& library = cuda::cublaslt();
    library.create = [](cublasLtHandle_t* handle) {
      *handle = reinterpret_cast<cublasLtHandle_t>(8);
      return CUBLAS_STATUS_SUCCESS;
    };
    library.heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                           cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                           cublasLtMatmulHeuristicResult_t* results, int* count) {
      ++proposed;
      *count = 0;
      const auto epilogue = of_operation<uint32_t>(op, CUBLASLT_MATMUL_DESC_EPILOGUE);
      if ((epilogue & 128) && !has_masks) return CUBLAS_STATUS_NOT_SUPPORTED;
      computed_in = of_operation<cublasComputeType_t>(op, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
      results[0] = {};  // a success
      *count = 1;
      return CUBLAS_STATUS_SUCCESS;
    };
    library.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t op, const void*, const void* a,
                        cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void*,
                        const void*, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
      ++multiplied;
      const Matrix first(a_layout), second(b_layout), result(d_layout);
      if (result.type == CUDA_R_32F) multiply<float>(op, a, first, b, second, d, result);
      if (result.type == CUDA_R_64F) multiply<double>(op, a, first, b, second, d, result);
      if (result.type == CUDA_R_16BF) multiply<Bfloat16>(op, a, first, b, second, d, result);
      return CUBLAS_STATUS_SUCCESS;
    };
    proposed = multiplied = 0;
    has_masks = true;
  }
  void TearDown() override { cuda::cublaslt() = real_; }
  cuda::CublasLt real_;
};

TEST_F(CublasLtTest, LinearIsThatOfTheHost) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBf16}) {
    const Tensor x = uniform(TensorSpec(Shape{5, 7}, dtype), -1, 1, 1);
    const Tensor w = uniform(TensorSpec(Shape{3, 7}, dtype), -1, 1, 2);
    const Tensor b = uniform(TensorSpec(Shape{3}, dtype), -1, 1, 3);
    const Tensor dy = uniform(TensorSpec(Shape{5, 3}, dtype), -1, 1, 4);
    const Tensor x_there = to(x, device()), w_there = to(w, device()), dy_there = to(dy, device());
    const double tolerance = dtype == DType::kBf16 ? 2e-2 : 1e-5;
    const auto same = [&](const Tensor& there, const Tensor& here) {
      EXPECT_TRUE(test::close(to(there, Device()), here, tolerance)) << to_string(dtype);
    };
    for (const Activation act : {Activation::kNone, Activation::kRelu}) {
      const TensorSpec out(Shape{5, 3}, dtype);
      same(run<LinearForward>({act}, {x_there, w_there}, out), run<LinearForward>({act}, {x, w}, out));
      same(run<LinearForward>({act}, {x_there, w_there, to(b, device())}, out),
           run<LinearForward>({act}, {x, w, b}, out));
    }
    same(run<LinearBackwardInput>({}, {dy_there, w_there}, x.spec()), run<LinearBackwardInput>({}, {dy, w}, x.spec()));
    same(run<LinearBackwardWeight>({}, {dy_there, x_there}, w.spec()),
         run<LinearBackwardWeight>({}, {dy, x}, w.spec()));
  }
  EXPECT_EQ(multiplied, 3 * 6) << "nothing else did it";
}

TEST_F(CublasLtTest, TheProductThatGivesTheWeightsGradientGivesTheBiasesToo) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBf16}) {
    const Tensor x = uniform(TensorSpec(Shape{5, 7}, dtype), -1, 1, 1);
    const Tensor dy = uniform(TensorSpec(Shape{5, 3}, dtype), -1, 1, 4);
    const Tensor w = to(uniform(TensorSpec(Shape{3, 7}, dtype), -1, 1, 2), device()).require_grad();
    const Tensor b = to(uniform(TensorSpec(Shape{3}, dtype), -1, 1, 3), device()).require_grad();
    const Tensor y = linear(to(x, device()), w, b);
    const int before = multiplied;
    const auto gradients = grad(y, {w, b}, to(dy, device()));
    EXPECT_EQ(multiplied, before + 1) << to_string(dtype);
    const double tolerance = dtype == DType::kBf16 ? 2e-2 : 1e-5;
    EXPECT_TRUE(test::close(to(gradients[0], Device()), linear_backward_weight(dy, x), tolerance));
    EXPECT_TRUE(test::close(to(gradients[1], Device()), sum(dy, {0}), tolerance));
  }
}

// On this device own kernels do nothing: all of it is in the products.
TEST_F(CublasLtTest, ProductsTakeTheReluBetweenLayersAlong) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBf16}) {
    for (const int64_t width : {128, 256}) {  // whole rows of the mask
      for (const bool has_bias : {true, false}) {
        SCOPED_TRACE(message("{} {} {}", dtype, width, has_bias));
        const auto gradients = [&](Device where) {
          const auto make = [&](const Shape& shape, uint64_t seed) {
            return to(uniform(TensorSpec(shape, dtype), -1, 1, seed), where).require_grad();
          };
          const Tensor x = make({5, 9}, 1), w1 = make({width, 9}, 2), w2 = make({7, width}, 3), none;
          const Tensor b1 = has_bias ? make({width}, 4) : none, b2 = has_bias ? make({7}, 5) : none;
          const Tensor y = linear(linear(x, w1, b1, Activation::kRelu), w2, b2), dy = make({5, 7}, 6).detached();
          return has_bias ? grad(y, {x, w1, w2, b1, b2}, dy) : grad(y, {x, w1, w2}, dy);
        };
        const TensorList here = gradients({});
        multiplied = 0;
        const int64_t launches = runtime_of(device()).counts().launches;
        const test::KernelLog log;
        const TensorList there = gradients(device());
        EXPECT_EQ(multiplied, 6);
        EXPECT_EQ(runtime_of(device()).counts().launches, launches + 6) << "no kernel of ours";
        EXPECT_TRUE(log.has("linear_forward_mask:cublaslt_a0_t0_s0_k0"));
        EXPECT_TRUE(log.has("linear_backward_input_mask:cublaslt_a0_t0_s0_k0"));
        for (size_t i = 0; i < here.size(); ++i)
          EXPECT_TRUE(test::close(to(there[i], Device()), here[i], dtype == DType::kBf16 ? 4e-2 : 1e-5)) << i;
      }
    }
  }
}

TEST_F(CublasLtTest, WhereNoProductTakesAMaskItHasAKernelOfItsOwn) {
  has_masks = false;
  const DeviceScope on(device());
  const TensorSpec x(Shape{5, 9}), w(Shape{131, 9}), y(Shape{5, 131}), mask = detail::mask_of(y);
  const detail::Ref<PreparedKernel> forward = prepare<LinearForwardMask>({}, {x, w}, {y, mask});
  const detail::Ref<PreparedKernel> backward = prepare<LinearBackwardInputMask>({}, {y, w, detail::mask_of(x)}, {x});
  for (const auto* kernel : {forward->kernel.get(), backward->kernel.get()}) {
    EXPECT_EQ(kernel->info().algorithm, "cublaslt_a0_t0_s0_k0_then_mask");
    EXPECT_EQ(kernel->info().launches, 2);
  }
  EXPECT_EQ(forward->kernel->info().bytes, 4 * (5 * 9 + 131 * 9 + 5 * 131) + 5 * 32);
  EXPECT_EQ(backward->kernel->info().bytes, 4 * (5 * 9 + 131 * 9 + 5 * 131) + 5 * 16);
  EXPECT_EQ(forward->kernel->info().flops, 2 * 5 * 9 * 131);
  EXPECT_EQ(backward->kernel->info().flops, 2 * 5 * 9 * 131);
}

TEST_F(CublasLtTest, MatmulIsThatOfTheHost) {
  const Shape batches[][2] = {{{}, {}}, {{4}, {4}}, {{4}, {1}}, {{1}, {4}}, {{2, 3}, {2, 3}}, {{2, 3}, {}}};
  for (const auto& [of_a, of_b] : batches) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const auto shape = [](Shape batch, int64_t rows, int64_t columns, bool t) {
        std::vector<int64_t> e(batch.begin(), batch.end());
        e.push_back(t ? columns : rows), e.push_back(t ? rows : columns);
        return Shape(std::span<const int64_t>(e));
      };
      const bool ta = transposed & 1, tb = transposed & 2;
      const Tensor a = uniform(shape(of_a, 5, 6, ta), -1, 1, 1), b = uniform(shape(of_b, 6, 7, tb), -1, 1, 2);
      const int before = multiplied;
      const Tensor there = matmul(to(a, device()), to(b, device()), ta, tb);
      EXPECT_EQ(multiplied, before + 1);
      EXPECT_TRUE(test::close(to(there, Device()), matmul(a, b, ta, tb), 1e-5)) << to_string(a.shape()) << transposed;
    }
  }
}

TEST_F(CublasLtTest, Tf32IsAskedForByName) {
  const Tensor x = to(uniform(Shape{4, 9}, -1, 1, 1), device());
  matmul(x, x, false, true);
  EXPECT_EQ(computed_in, CUBLAS_COMPUTE_32F);
  const PolicyScope tf32({.math = MathMode::kTf32});
  matmul(x, x, false, true);
  EXPECT_EQ(computed_in, CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST_F(CublasLtTest, AWarmProductPlansNothing) {
  const Tensor x = to(uniform(Shape{5, 8}, -1, 1, 1), device()), w = to(uniform(Shape{3, 8}, -1, 1, 2), device());
  const Tensor b = to(uniform(Shape{3}, -1, 1, 3), device());
  for (int i = 0; i < 3; ++i) linear(x, w, b);
  const int planned = proposed;
  linear(x, w, b);
  EXPECT_EQ(proposed, planned);
}

}  // namespace
}  // namespace plumb
