// Products and convolutions of bf16 tensors by kernels in f32.
#include "kernels/cpu/wrappers/via_f32.h"

#include <gtest/gtest.h>

#include <limits>

#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "kernels/cpu/gemm/amx_block.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

constexpr Conv2dParams kPadded{.padding = 1};

Tensor bf16(const Shape& s, uint64_t seed, Layout layout = Layout::kNchw) {
  return random_tensor(TensorSpec(s, DType::kBf16, layout), seed);
}

// What KernelCheck asks of every kernel: the reference's numbers, and no byte beyond operands, packs and workspace.
TEST(ViaF32, EveryKernelIsRight) {
  KernelCheck check(8);
  for (const Layout layout : kPublicLayouts) {
    for (const int64_t window : {1, 3}) {
      const Tensor x = bf16({2, 19, 9, 11}, 1, layout).require_grad(), b = bf16({18}, 2).require_grad();
      const Tensor w = bf16({18, 19, window, window}, 3).require_grad();
      const Tensor y = conv2d(x, w, b, {.padding = static_cast<int32_t>(window / 2), .activation = Activation::kRelu});
      grad(y, {x, w, b}, bf16(y.shape(), 4, layout));
    }
  }
  const Tensor x = bf16({5, 33}, 5).require_grad(), w = bf16({18, 33}, 6).require_grad(), b = bf16({18}, 7);
  grad(linear(x, w, b, Activation::kRelu), {x, w}, bf16({5, 18}, 8));
  matmul(bf16({3, 7, 33}, 9), bf16({33, 12}, 10));
  matmul(x, w, false, true);
  for (const char* kernel : {"conv2d_forward:via_f32_blocked", "conv2d_backward_input:via_f32_direct",
                             "linear_forward:via_f32_inner_product", "linear_forward:via_f32_skinny_gemm",
                             "linear_backward_input:via_f32_gemm", "matmul:via_f32_matmul"})
    EXPECT_TRUE(check.checked().contains(kernel)) << kernel;
  // What takes bf16 itself is not run in f32 as well.
  const bool has_packed = cpu::kMultiplies<Bfloat16>;
  for (const char* op : {"conv2d_backward_weight", "linear_backward_weight", "matmul"}) {
    EXPECT_EQ(check.checked().contains(std::string(op) + ":packed_gemm"), has_packed) << op;
    EXPECT_EQ(check.checked().contains(std::string(op) + ":via_f32_packed_gemm"), !has_packed) << op;
  }
  const bool has_implicit = cpu::has_amx();
  for (const char* op : {"conv2d_forward", "conv2d_backward_input"}) {
    EXPECT_EQ(check.checked().contains(std::string(op) + ":implicit_gemm"), has_implicit) << op;
    EXPECT_EQ(check.checked().contains(std::string(op) + ":via_f32_implicit_gemm"), !has_implicit) << op;
  }
  EXPECT_TRUE(check.checked().contains("conv2d_forward:winograd_f4x4"));
  EXPECT_FALSE(check.checked().contains("conv2d_forward:via_f32_winograd_f4x4"));
}

// One that reads the weights as they are is among them, where it does not take bf16 itself.
std::vector<std::string> kernels_in_f32() {
  std::vector<std::string> all = {"direct", "blocked"};
  if (!cpu::has_amx()) all.push_back("implicit_gemm");
  return all;
}

// Sums of small whole numbers are exact in f32, and in bf16 while they are below 256.
TEST(ViaF32, GivesTheBitsOfF32) {
  for (const std::string& algorithm : kernels_in_f32()) {
    const auto whole = [](const Shape& s, uint64_t seed) {
      return small_integers(TensorSpec(s, DType::kBf16, Layout::kNhwc), seed, 1);
    };
    const Tensor x = whole({2, 20, 8, 8}, 1), w = to(whole({16, 20, 3, 3}, 2), Layout::kNchw);
    const auto by = [](const std::string& name) { return PolicyScope({.algorithm = algorithm_id(name)}); };
    const Tensor expected = [&] {
      const PolicyScope plain = by("reference");
      return conv2d(to(x, DType::kF32), to(w, DType::kF32), kPadded);
    }();
    const PolicyScope scope = by("via_f32_" + algorithm);
    EXPECT_TRUE(equal(to(conv2d(x, w, kPadded), DType::kF32), expected)) << algorithm;
  }
}

// Weights are widened once for each version of theirs, whether the kernel packs them or reads them as they are.
TEST(ViaF32, KeepsTheWeightsAsPacks) {
  for (const std::string& algorithm : kernels_in_f32()) {
    const PolicyScope scope({.algorithm = algorithm_id("via_f32_" + algorithm)});
    const Tensor x = bf16({2, 32, 12, 12}, 1, Layout::kNhwc), w = bf16({32, 32, 3, 3}, 2);
    const auto packs_of = [&] {
      const KernelLog log;
      conv2d(x, w, kPadded);
      return log.count("repack");
    };
    EXPECT_EQ(packs_of(), 1) << algorithm;
    EXPECT_EQ(packs_of(), 0) << algorithm;
    Tensor written = w;
    written.copy_from(bf16(w.shape(), 3));
    EXPECT_EQ(packs_of(), 1) << algorithm;
    const Tensor expected = conv2d(to(x, DType::kF32), to(w, DType::kF32), kPadded);
    EXPECT_TRUE(close(conv2d(x, w, kPadded), expected, 0.02)) << algorithm;

    const detail::Ref<PreparedKernel> kernel =
        prepare<Conv2dForward>(kPadded, {x.spec(), w.spec()}, {conv2d_output(kPadded, x.spec(), w.spec())});
    const KernelInfo& info = kernel->kernel->info();
    EXPECT_EQ(info.packs.size(), 1u) << algorithm;
    EXPECT_GE(info.conversions, 2) << algorithm;  // of x and of y
  }
}

// A packer's workspace counts as well: with little allowed, another kernel runs. (What is prepared stays, so that each
// limit has a shape of its own.)
TEST(ViaF32, StaysWithinTheWorkspaceLimit) {
  const Tensor x = bf16({1, 64, 4, 4}, 1, Layout::kNhwc);
  int64_t outputs = 204;
  for (const size_t limit : {size_t{1} << 10, size_t{64} << 10, size_t{256} << 10, size_t{4} << 20}) {
    const Tensor w = bf16({++outputs, 64, 3, 3}, 2);
    set_workspace_limit(limit);
    EXPECT_EQ(error_of([&] { conv2d(x, w, kPadded); }), kNothingThrown) << limit;
    set_workspace_limit(std::numeric_limits<size_t>::max());
  }
}

// Where the processor cannot multiply in bf16, oneDNN's kernels in bf16 are slower by far than any in f32.
TEST(ViaF32, IsTheDefaultWhereTheProcessorCannotMultiplyInBf16) {
  const Tensor x = bf16({2, 32, 12, 12}, 1, Layout::kNhwc), w = bf16({32, 32, 3, 3}, 2), v = bf16({32, 64}, 3);
  KernelLog log;
  conv2d(x, w, kPadded);
  linear(bf16({16, 64}, 4), v);
  matmul(bf16({16, 32}, 5), v);
  for (const char* kernel : {"conv2d_forward:via_f32_", "linear_forward:via_f32_", "matmul:via_f32_"})
    EXPECT_EQ(std::ranges::any_of(log.ran, [&](const std::string& ran) { return ran.starts_with(kernel); }),
              !cpu::multiplies_bf16())
        << kernel;
}

}  // namespace
}  // namespace plumb::test
