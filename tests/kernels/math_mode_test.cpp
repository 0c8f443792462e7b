// Products of f32 tensors in arithmetic that was asked for by name.
#include <gtest/gtest.h>

#include <set>

#include "dispatch/gate.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"
#include "kernels/conv2d.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/linear.h"
#include "kernels/matmul.h"
#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "tests/support/compare.h"

namespace plumb::test {
namespace {

// A product of two inputs, in the dtype that they have.
struct Work {
  std::string name;
  std::vector<TensorSpec> in;
  TensorSpec out;
  std::function<Tensor(std::span<const Tensor> in, const TensorSpec& out)> run;
};
template <class K>
Work work(const TensorSpec& a, const TensorSpec& b, const TensorSpec& out, const typename K::Params& params = {}) {
  return {message("{} {}", K::kName, a.layout), {a, b}, out, [params](auto in, const TensorSpec& spec) {
            return plumb::run<K>(params, {in[0], in[1]}, spec);
          }};
}

std::vector<Work> works() {
  const TensorSpec x(Shape{64, 128}), w(Shape{96, 128}), y(Shape{64, 96});
  std::vector<Work> all{work<Matmul>(x, Shape{128, 96}, y), work<LinearForward>(x, w, y),
                        work<LinearBackwardInput>(y, w, x), work<LinearBackwardWeight>(y, x, w)};
  for (const Layout layout : kPublicLayouts) {
    const Conv2dParams same{.padding = {1, 1, 1, 1}};
    const TensorSpec images(Shape{4, 32, 12, 12}, DType::kF32, layout), filters(Shape{48, 32, 3, 3});
    const TensorSpec maps = conv2d_output(same, images, filters);
    all.push_back(work<Conv2dForward>(images, filters, maps, same));
    all.push_back(work<Conv2dBackwardInput>(maps, filters, images, same));
    all.push_back(work<Conv2dBackwardWeight>(maps, images, filters, same));
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

constexpr const char* kAlgorithms[] = {"direct",      "blocked", "winograd", "im2col",       "skinny_gemm",
                                       "packed_gemm", "matmul",  "gemm",     "inner_product"};

// Strict arithmetic is within rounding of f32; fast arithmetic rounds both factors to bf16, and sums in f32.
TEST(MathMode, StaysWithinItsBound) {
  for (const Work& work : works()) {
    const std::vector<Tensor> in = inputs_of(work);
    const Tensor expected = in_f64(work, in);
    for (const char* algorithm : kAlgorithms) {
      SCOPED_TRACE(work.name + " " + algorithm);
      for (const MathMode math : {MathMode::kStrict, MathMode::kBf16}) {
        const PolicyScope scope({.math = math, .algorithm = algorithm_id(algorithm)});
        const double bound = math == MathMode::kStrict ? 1e-5 : 4 * unit_roundoff(DType::kBf16);
        EXPECT_TRUE(close(work.run(in, work.out), expected, bound)) << static_cast<int>(math);
      }
    }
  }
}

TEST(MathMode, ReachesTheLibrary) {
  EXPECT_EQ(cpu::dnnl_attr(MathMode::kStrict).get_fpmath_mode(), dnnl::fpmath_mode::strict);
  EXPECT_EQ(cpu::dnnl_attr(MathMode::kBf16).get_fpmath_mode(), dnnl::fpmath_mode::bf16);
}

TEST(MathMode, Bf16IsFasterArithmeticWhereTheProcessorHasIt) {
  std::set<std::string> rounded;
  for (const Work& work : works()) {
    const std::vector<Tensor> in = inputs_of(work);
    const Tensor expected = in_f64(work, in);
    for (const char* algorithm : kAlgorithms) {
      const PolicyScope scope({.math = MathMode::kBf16, .algorithm = algorithm_id(algorithm)});
      if (!close(work.run(in, work.out), expected, 1e-4)) rounded.insert(work.name + " " + algorithm);
    }
  }
  if (rounded.empty() && (!PLUMB_DNNL_V3 || cpu_isa().find("amx_bf16") == std::string::npos))
    GTEST_SKIP() << "oneDNN 3 has it on processors with AMX";
  EXPECT_FALSE(rounded.empty());
}

TEST(MathMode, Tf32IsRefusedOnTheCpu) {
  const PolicyScope scope({.math = MathMode::kTf32});
  for (const Work& work : works()) {
    SCOPED_TRACE(work.name);
    const std::vector<Tensor> in = inputs_of(work);
    EXPECT_TRUE(refused([&] { work.run(in, work.out); }, ": cpu has no arithmetic in tf32; ask for MathMode::kStrict"));
    EXPECT_NO_THROW(in_f64(work, in)) << "modes speak of f32";
    EXPECT_NO_THROW(relu(in[0])) << "and of products";
  }
}

}  // namespace
}  // namespace plumb::test
