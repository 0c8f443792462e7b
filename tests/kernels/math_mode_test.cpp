// Products of f32 tensors in arithmetic that was asked for by name.
#include <gtest/gtest.h>

#include "kernels/conv2d.h"
#include "kernels/gate.h"
#include "kernels/linear.h"
#include "kernels/machine.h"
#include "kernels/matmul.h"
#include "ops/conv2d.h"
#include "tests/support/compare.h"

namespace plumb::test {
namespace {

// A product of its inputs, in the dtype that they have.
struct Work {
  std::string name;
  std::vector<TensorSpec> in;
  TensorSpec out;
  Tensor (*run)(std::span<const Tensor> in, const TensorSpec& out);
};

std::vector<Work> works() {
  const TensorSpec x(Shape{64, 128}), w(Shape{96, 128}), y(Shape{64, 96});
  std::vector<Work> all{
      {"matmul",
       {x, Shape{128, 96}},
       y,
       [](auto in, auto& out) {
         return run<Matmul>({}, {in[0], in[1]}, out);
       }},
      {"linear_forward",
       {x, w},
       y,
       [](auto in, auto& out) {
         return run<LinearForward>({}, {in[0], in[1]}, out);
       }},
      {"linear_backward_input",
       {y, w},
       x,
       [](auto in, auto& out) {
         return run<LinearBackwardInput>({}, {in[0], in[1]}, out);
       }},
      {"linear_backward_weight",
       {y, x},
       w,
       [](auto in, auto& out) {
         return run<LinearBackwardWeight>({}, {in[0], in[1]}, out);
       }},
  };
  for (const Layout layout : kPublicLayouts) {
    static constexpr Conv2dParams kSame{.padding = {1, 1, 1, 1}};
    const TensorSpec a(Shape{4, 32, 12, 12}, DType::kF32, layout), f(Shape{48, 32, 3, 3});
    const TensorSpec b = conv2d_output(kSame, a, f);
    const auto named = [&](const char* name) { return message("{} {}", name, layout); };
    all.push_back({named("conv2d_forward"), {a, f}, b, [](auto in, auto& out) {
                     return run<Conv2dForward>(kSame, {in[0], in[1]}, out);
                   }});
    all.push_back({named("conv2d_backward_input"), {b, f}, a, [](auto in, auto& out) {
                     return run<Conv2dBackwardInput>(kSame, {in[0], in[1]}, out);
                   }});
    all.push_back({named("conv2d_backward_weight"), {b, a}, f, [](auto in, auto& out) {
                     return run<Conv2dBackwardWeight>(kSame, {in[0], in[1]}, out);
                   }});
  }
  return all;
}

std::vector<Tensor> inputs_of(const Work& work) {
  std::vector<Tensor> all;
  for (const TensorSpec& s : work.in) all.push_back(random_tensor(s, all.size() + 1));
  return all;
}
Tensor in_f64(const Work& work, std::span<const Tensor> in) {
  std::vector<Tensor> wide;
  for (const Tensor& t : in) wide.push_back(converted(t, DType::kF64, t.layout()));
  return work.run(wide, work.out.with(DType::kF64));
}

constexpr const char* kAlgorithms[] = {"direct", "blocked", "winograd", "thin", "matmul", "gemm", "inner_product"};

// Strict arithmetic is within rounding of f32; fast arithmetic rounds both factors to bf16, and sums in f32.
TEST(MathMode, StaysWithinItsBound) {
  for (const Work& work : works()) {
    const std::vector<Tensor> in = inputs_of(work);
    const Tensor expected = in_f64(work, in);
    for (const char* algorithm : kAlgorithms) {
      SCOPED_TRACE(work.name + " " + algorithm);
      for (const MathMode math : {MathMode::kStrict, MathMode::kBf16}) {
        const ChoiceScope scope({.math = math, .algorithm = algorithm_id(algorithm)});
        const double bound = math == MathMode::kStrict ? 1e-5 : 4 * unit_roundoff(DType::kBf16);
        EXPECT_TRUE(close(work.run(in, work.out), expected, bound)) << static_cast<int>(math);
      }
    }
  }
}

TEST(MathMode, Bf16IsFasterArithmeticWhereTheProcessorHasIt) {
  std::set<std::string> rounded;
  for (const Work& work : works()) {
    const std::vector<Tensor> in = inputs_of(work);
    const Tensor expected = in_f64(work, in);
    for (const char* algorithm : kAlgorithms) {
      const ChoiceScope scope({.math = MathMode::kBf16, .algorithm = algorithm_id(algorithm)});
      if (!close(work.run(in, work.out), expected, 1e-4)) rounded.insert(work.name + " " + algorithm);
    }
  }
  if (cpu_isa().find("amx_bf16") == std::string::npos) GTEST_SKIP() << "oneDNN has it on processors with AMX";
  for (const char* what : {"matmul matmul", "linear_forward inner_product", "conv2d_forward nhwc direct"})
    EXPECT_TRUE(rounded.contains(what)) << what;
}

}  // namespace
}  // namespace plumb::test
