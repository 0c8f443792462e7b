// A linear layer's ReLU on a device: its mask, and backward by the product of the next layer, held against the host.
#include <gtest/gtest.h>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "graph/program.h"
#include "kernels/linear.h"
#include "ops/activation.h"
#include "ops/convert.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

using test::KernelLog;
using test::random_tensor;

constexpr Device kEmulated{DeviceType::kCuda, 0};
constexpr Activation kRelu = Activation::kRelu;
constexpr DType kDtypes[] = {DType::kF32, DType::kF64, DType::kBf16};

TEST(ReluMaskTest, KernelsAreByTheDefinition) {
  test::KernelCheck check(4);
  for (const DType dtype : kDtypes) {
    for (const int64_t rows : {0, 1, 5, 33}) {
      for (const int64_t columns : {1, 7, 128, 129, 1025}) {
        SCOPED_TRACE(message("{} {} {}", dtype, rows, columns));
        const TensorSpec of_y(Shape{rows, columns}, dtype), of_mask = detail::mask_of(of_y);
        EXPECT_EQ(of_mask, TensorSpec(Shape{rows, (columns + 127) / 128 * 128 / 8}, DType::kU8));
        const Tensor x = test::small_integers(TensorSpec(Shape{rows, 3}, dtype), 1);
        const Tensor w = test::small_integers(TensorSpec(Shape{columns, 3}, dtype), 2);
        const Tensor b = test::small_integers(TensorSpec(Shape{columns}, dtype), 3);
        const Tensor back = test::small_integers(TensorSpec(Shape{3, columns}, dtype), 4);
        const auto there = [](const Tensor& t) { return to(t, kEmulated); };

        const auto [y, mask] = run<LinearForwardMask>({}, {there(x), there(w), there(b)}, {of_y, of_mask});
        const auto [z, plain] = run<LinearForwardMask>({}, {there(x), there(w)}, {of_y, of_mask});
        const Tensor dx = run<LinearBackwardInputMask>({}, {there(x), there(back), mask}, of_y);

        EXPECT_TRUE(test::equal(test::on_host(y), run<LinearForward>({kRelu}, {x, w, b}, of_y)));
        EXPECT_TRUE(test::equal(test::on_host(z), run<LinearForward>({kRelu}, {x, w}, of_y)));
        const auto bits = [&](const Tensor& of, const Tensor& m) {
          std::vector<double> expected(static_cast<size_t>(of_mask.numel()));
          const std::vector<double> values = test::to_doubles(of);
          for (int64_t i = 0; i < of_y.numel(); ++i) {
            const int64_t row = i / columns, column = i % columns;
            if (values[static_cast<size_t>(i)] > 0)
              expected[static_cast<size_t>(row * of_mask.shape[1] + column / 8)] += 1 << column % 8;
          }
          EXPECT_EQ(test::to_doubles(m), expected);
        };
        bits(y, mask);
        bits(z, plain);
        const std::vector<double> y_values = test::to_doubles(y);
        std::vector<double> expected = test::to_doubles(run<LinearBackwardInput>({}, {x, back}, of_y));
        for (size_t i = 0; i < expected.size(); ++i) expected[i] = y_values[i] > 0 ? expected[i] : 0;
        EXPECT_EQ(test::to_doubles(dx), expected);
      }
    }
  }
  EXPECT_TRUE(check.checked().contains("linear_forward_mask:gemm_then_mask"));
  EXPECT_TRUE(check.checked().contains("linear_backward_input_mask:gemm_then_mask"));
}

// Two layers, whose first has a ReLU, and a third on the first; on the thread's device.
struct Layers {
  Tensor x, w1, b1, w2, b2, w3;
  explicit Layers(DType dtype) {
    uint64_t seed = 0;
    const auto make = [&](const Shape& shape) {
      Tensor t = random_tensor(TensorSpec(shape, dtype), ++seed);
      return t.require_grad();
    };
    x = make({5, 9}), w1 = make({129, 9}), b1 = make({129}), w2 = make({7, 129}), b2 = make({7});
    w3 = make({7, 129});
  }
  Tensor first() const { return linear(x, w1, b1, kRelu); }
  Tensor second() const { return linear(first(), w2, b2); }
  std::vector<Tensor> all() const { return {x, w1, b1, w2, b2}; }
};

// What is computed from such layers, and how many kernels of a kind it takes.
struct Use {
  const char* name;
  std::function<TensorList(Layers&)> gradients;
  int masks, products, relus;  // linear_forward_mask, linear_backward_input_mask, relu_backward
};

Tensor cotangent(const Tensor& y) { return random_tensor(y.spec(), 99); }
TensorList gradients(const Tensor& y, std::span<const Tensor> xs, GradOptions options = {}) {
  return grad(y, xs, cotangent(y), options);
}
TensorList gradients(const Tensor& y, std::initializer_list<Tensor> xs, GradOptions options = {}) {
  return gradients(y, std::span(xs.begin(), xs.size()), options);
}

const std::vector<Use>& all_uses() {
  static const std::vector<Use> uses{
      {"two layers", [](Layers& l) { return gradients(l.second(), l.all()); }, 1, 1, 0},
      {"a ReLU on both", [](Layers& l) { return gradients(linear(l.first(), l.w2, l.b2, kRelu), l.all()); }, 2, 1, 1},
      {"three layers",
       [](Layers& l) {
         const Tensor w = random_tensor(TensorSpec(Shape{3, 7}, l.x.dtype()), 7).require_grad();
         return gradients(linear(linear(l.first(), l.w2, l.b2, kRelu), w), {l.x, l.w1, l.b1, l.w2, l.b2, w});
       },
       2, 2, 0},
      {"no biases",
       [](Layers& l) {
         return gradients(linear(linear(l.x, l.w1, Tensor(), kRelu), l.w2), {l.x, l.w1, l.w2});
       },
       1, 1, 0},
      {"constant weights behind",
       [](Layers& l) {
         return gradients(linear(l.first(), l.w2.detached(), l.b2.detached()), {l.x, l.w1, l.b1});
       },
       1, 1, 0},
      {"a constant bias behind",
       [](Layers& l) {
         return gradients(linear(l.first(), l.w2, l.b2.detached()), {l.w1, l.w2});
       },
       1, 1, 0},
      {"only an input that needs one",
       [](Layers& l) {
         return gradients(linear(linear(l.x, l.w1.detached(), l.b1.detached(), kRelu), l.w2.detached()), {l.x});
       },
       1, 1, 0},
      {"nothing before the ReLU needs one",
       [](Layers& l) {
         const Tensor h = linear(l.x.detached(), l.w1.detached(), Tensor(), kRelu);
         return gradients(linear(h, l.w2), {l.w2});
       },
       0, 0, 0},
      {"asked for between the layers",
       [](Layers& l) {
         const Tensor h = l.first();
         return gradients(linear(h, l.w2, l.b2), {h, l.w1, l.w2});
       },
       1, 0, 1},
      {"two layers on one",
       [](Layers& l) {
         const Tensor h = l.first();
         return gradients(add(linear(h, l.w2, l.b2), linear(h, l.w3)), {l.x, l.w1, l.b1, l.w2, l.w3});
       },
       1, 2, 0},
      {"a layer and another op on one",
       [](Layers& l) {
         const Tensor h = l.first();
         return gradients(mul(linear(h, l.w2, l.b2), sum(square(h), {1}, true)), l.all());
       },
       1, 1, 1},
      {"a layer and another op on one, which gives two gradients",  // and the ReLU takes their sum
       [](Layers& l) {
         const Tensor h = l.first();
         return gradients(mul(linear(h, l.w2, l.b2), sum(mul(h, h), {1}, true)), l.all());
       },
       1, 1, 0},
      {"dropout between",
       [](Layers& l) {
         Generator generator(3);
         return gradients(linear(dropout(l.first(), 0.5, generator), l.w2, l.b2), l.all());
       },
       1, 0, 1},
      {"twice",
       [](Layers& l) {
         const Tensor y = l.second();
         TensorList all = gradients(y, l.all(), {.retain_graph = true});
         for (const Tensor& g : gradients(y, l.all())) all.push_back(g);
         return all;
       },
       1, 2, 0},
      {"gradients of gradients",
       [](Layers& l) {
         const Tensor y = l.second();
         TensorList all = gradients(y, {l.x, l.w1, l.w2}, {.create_graph = true});
         const Tensor s = add(sum(mul(all[0], all[0])), sum(mul(all[1], all[1])));
         for (const Tensor& g : grad(s, {l.x, l.w1, l.w2}, {.allow_unused = true})) all.push_back(g);
         return all;
       },
       1, 0, 3},
      {"an algorithm by name",
       [](Layers& l) {
         const PolicyScope named({.algorithm = algorithm_id("gemm")});
         return gradients(l.second(), l.all());
       },
       0, 0, 1},
  };
  return uses;
}

TEST(ReluMaskTest, GradientsAreThoseOfTheHost) {
  for (const Use& use : all_uses()) {
    for (const DType dtype : kDtypes) {
      SCOPED_TRACE(message("{} {}", use.name, dtype));
      Layers here(dtype);
      const TensorList expected = use.gradients(here);
      const DeviceScope on(kEmulated);
      Layers there(dtype);
      const KernelLog log;
      const TensorList got = use.gradients(there);
      EXPECT_EQ(log.count("linear_forward_mask"), use.masks);
      EXPECT_EQ(log.count("linear_backward_input_mask"), use.products);
      EXPECT_EQ(log.count("relu_backward"), use.relus);
      ASSERT_EQ(got.size(), expected.size());
      const double tolerance = dtype == DType::kBf16 ? 4e-2 : dtype == DType::kF32 ? 1e-5 : 1e-12;
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(test::close(test::on_host(got[i]), expected[i], tolerance)) << "gradient " << i;
    }
  }
}

TEST(ReluMaskTest, CapturedIsEagerBitForBit) {
  const DeviceScope on(kEmulated);
  for (const DType dtype : kDtypes) {
    const Layers l(dtype);
    const Tensor dy = random_tensor(TensorSpec(Shape{5, 7}, dtype), 99);
    const auto step = [&] {
      const Tensor h = l.first();
      return grad(mul(linear(h, l.w2, l.b2), linear(h, l.w3)), {l.x, l.w1, l.b1, l.w2, l.b2, l.w3}, dy);
    };
    const TensorList eager = step();
    Program p = capture(step);
    const KernelLog log;
    p.run();
    EXPECT_EQ(log.count("linear_backward_input_mask"), 2);
    for (size_t i = 0; i < eager.size(); ++i)
      EXPECT_TRUE(test::bitwise_equal(test::on_host(p.outputs()[i]), test::on_host(eager[i])))
          << to_string(dtype) << " " << i;
  }
}

TEST(ReluMaskTest, WithoutRecordingThereIsNone) {
  const DeviceScope on(kEmulated);
  const Layers l(DType::kF32);
  const KernelLog log;
  const NoGrad no_grad;
  EXPECT_EQ(detail::relu_behind(l.first()), nullptr);
  EXPECT_EQ(log.ran, std::vector<std::string>{"linear_forward:gemm"});
}

TEST(ReluMaskTest, IsReleasedWithTheGraph) {
  const DeviceScope on(kEmulated);
  const Layers l(DType::kF32);
  const Tensor h = l.first(), y = linear(h, l.w2, l.b2), other = linear(h, l.w3);
  gradients(y, {l.w1}, {.retain_graph = true});
  const detail::ReluNode* const relu = detail::relu_behind(h);
  ASSERT_TRUE(relu);
  EXPECT_EQ(relu->mask().spec(), detail::mask_of(h.spec()));
  gradients(y, {l.w1});
  EXPECT_TRUE(test::refused([&] { relu->mask(); }, "released it"));
  EXPECT_TRUE(test::refused([&] { gradients(y, {l.w1}); }, "released it"));
  EXPECT_TRUE(test::refused([&] { gradients(other, {l.w1}); }, "released it"));
}

TEST(ReluMaskTest, AnOutputThatWasWrittenToIsRefused) {
  const DeviceScope on(kEmulated);
  const Layers l(DType::kF32);
  Tensor h = l.first();
  h.copy_from(h.detached().clone());
  const Tensor y = linear(h, l.w2.detached());
  EXPECT_TRUE(test::refused([&] { gradients(y, {l.w1}); }, "relu: its output f32 (5, 129) nchw was written to"));
}

}  // namespace
}  // namespace plumb
