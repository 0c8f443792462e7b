// What a capture records, refuses and leaves as it was, and what its program does.
#include <gtest/gtest.h>

#include <cstring>

#include "dispatch/gate.h"
#include "graph/program.h"
#include "kernels/accumulate.h"
#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/sgd.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

TEST(CaptureTest, ReadingATensorInsideThrowsASentence) {
  const Tensor x = Tensor::from<float>({1, 2}, Shape{2});

  const auto reading = [&] {
    capture([&] {
      const Tensor y = mul(x, x);
      y.data<float>();
      return TensorList{y};
    });
  };

  EXPECT_TRUE(test::refused(reading, "while capturing"));
  EXPECT_EQ(detail::ctx.recorder, nullptr);
}

TEST(CaptureTest, InputsAreRefilledInPlace) {
  Tensor x = Tensor::from<float>({1, 2, 3}, Shape{3});
  Program p = capture([&] { return TensorList{sum(mul(x, x))}; });

  p.run();
  EXPECT_EQ(p.outputs()[0].item(), 14);
  x.mutable_data<float>()[0] = 4;
  p.run();

  EXPECT_EQ(p.outputs()[0].item(), 29);
}

TEST(CaptureTest, WorkThatNothingDependsOnIsLeftOut) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, Shape{3});

  const Program p = capture([&] {
    exp(exp(x));
    return TensorList{relu(x)};
  });

  EXPECT_EQ(p.stats().recorded, 3);
  EXPECT_EQ(p.stats().steps, 1);
}

TEST(CaptureTest, IntermediateValuesShareMemory) {
  const Tensor x = uniform(TensorSpec(Shape{1000}), -1, 1, 1);

  const Program p = capture([&] {
    Tensor y = x;
    for (int i = 0; i < 10; ++i) y = relu(y);
    return TensorList{y};
  });

  EXPECT_EQ(p.stats().unplanned_bytes, 9u * 4096);
  EXPECT_EQ(p.stats().arena_bytes, 2u * 4096);
}

TEST(CaptureTest, PacksFollowWeightsThatOthersWrite) {
  const Tensor x = uniform(TensorSpec(Shape{2, 32, 12, 12}, DType::kF32, Layout::kNhwc), -1, 1, 1);
  Tensor w = uniform(TensorSpec(Shape{32, 32, 3, 3}), -1, 1, 2);
  Program p = capture([&] { return TensorList{conv2d(x, w)}; });
  p.run();
  w.mutable_data<float>()[5] = 100;

  p.run();
  const Tensor eager = conv2d(x, w);

  ASSERT_EQ(eager.numel(), p.outputs()[0].numel());
  EXPECT_EQ(std::memcmp(eager.value->data, p.outputs()[0].value->data, eager.bytes()), 0);
}

// What a run does not write is packed before the first one only: no later value may take the memory of the pack.
TEST(CaptureTest, PacksLastFromRunToRun) {
  const Tensor x = uniform(TensorSpec(Shape{2, 32, 12, 12}, DType::kF32, Layout::kNhwc), -1, 1, 1);
  const TensorSpec weights(Shape{32, 32, 3, 3});
  const Tensor v = uniform(weights, -1, 1, 2), w = uniform(weights, -1, 1, 3);
  const auto step = [&] { return TensorList{relu(conv2d(relu(conv2d(x, v)), w))}; };
  Program p = capture(step);

  p.run();
  p.run();

  EXPECT_TRUE(test::bitwise_equal(p.outputs()[0], step()[0]));
}

TEST(CaptureTest, PacksAreOfTheWeightsWhereTheyAreUsed) {
  const Tensor x = uniform(TensorSpec(Shape{2, 32, 12, 12}, DType::kF32, Layout::kNhwc), -1, 1, 1);
  const TensorSpec weights(Shape{32, 32, 3, 3});
  const Tensor change = uniform(weights, -1, 1, 2);
  const auto step = [&](const Tensor& w) {
    const Tensor before = conv2d(x, w);
    update<Accumulate>({}, {w, change}, Writes{0, 1});
    return TensorList{before, conv2d(x, w)};
  };
  const Tensor w = uniform(weights, -1, 1, 3), same = uniform(weights, -1, 1, 3);
  Program p = capture([&] { return step(w); });

  p.run();
  const TensorList eager = step(same);

  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(test::bitwise_equal(p.outputs()[i], eager[i])) << i;
}

TEST(CaptureTest, AliasesOfOutputsAndInputsResolve) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, Shape{2, 2});

  Program p = capture([&] {
    const Tensor y = reshape(mul(reshape(x, Shape{4}), reshape(x, Shape{4})), Shape{2, 2});
    return TensorList{y, reshape(y, Shape{4}), x};
  });
  p.run();

  EXPECT_EQ(p.outputs()[0].data<float>()[3], 16);
  EXPECT_EQ(p.outputs()[1].data<float>()[2], 9);
  EXPECT_EQ(p.outputs()[2].data<float>()[1], 2);
}

TEST(CaptureTest, CapturesDoNotNest) {
  EXPECT_THROW(capture([] { return capture([] { return TensorList{}; }).outputs(); }), Error);
}

TEST(CaptureTest, TensorsOfOneCaptureAreNotForAnother) {
  const Tensor x = Tensor::from<float>({1}, Shape{1});
  Tensor leaked;
  capture([&] {
    leaked = mul(x, x);
    return TensorList{leaked};
  });

  EXPECT_THROW(mul(leaked, x), Error);
  EXPECT_THROW(capture([&] { return TensorList{mul(leaked, x)}; }), Error);
  EXPECT_TRUE(
      test::refused([&] { capture([&] { return TensorList{leaked}; }); }, "from an earlier capture was returned"));
  EXPECT_THROW(capture([&] { return TensorList{leaked, mul(leaked, x)}; }), Error);
  const Tensor w = Tensor::from<float>({3}, Shape{1}).require_grad();
  capture([&] { return TensorList{leaked = mul(w, x)}; });
  EXPECT_TRUE(test::refused([&] { grad(leaked, {w}, x); }, "grad: y f32 (1) nchw comes from a captured step"));
}

TEST(CaptureTest, ProgramsDoNotRunInsideACapture) {
  const Tensor x = Tensor::from<float>({2}, Shape{1});
  StaticFunction square([](std::span<const Tensor> in) { return TensorList{mul(in[0], in[0])}; });
  square({x});

  EXPECT_TRUE(test::refused([&] { capture([&] { return square({x}); }); }, "run: a capture is under way"));
}

// Gradients of a value that is used twice are added in place in both modes.
TEST(CaptureTest, RunsTheKernelsOfEagerMode) {
  const Tensor x = Tensor::from<float>({1, -2, 3, 4}, Shape{2, 2}).require_grad();
  const auto step = [&] {
    const Tensor y = relu(mul(x, x));
    const Tensor loss = sum(add(mul(y, y), exp(y)));
    return TensorList{loss.detached(), grad(loss, {x})[0]};
  };
  test::KernelLog eager;
  const TensorList expected = step();

  Program p = capture(step);

  std::vector<std::string> captured;
  for (const PreparedKernel* k : p.kernels())
    captured.push_back(std::string(k->kind->name) + ":" + k->kernel->info().algorithm);
  EXPECT_EQ(captured, eager.ran);
  EXPECT_GT(eager.count("accumulate"), 0);
  p.run();
  EXPECT_TRUE(test::bitwise_equal(p.outputs()[1], expected[1]));
}

// A run writes the memory of its outputs: what was kept or packed of them before is of the past.
TEST(CaptureTest, ARunWritesItsOutputs) {
  const Tensor a = uniform(TensorSpec(Shape{32, 32, 3, 3}), -1, 1, 1);
  const Tensor x = uniform(TensorSpec(Shape{2, 32, 12, 12}, DType::kF32, Layout::kNhwc), -1, 1, 2).require_grad();
  Program p = capture([&] { return TensorList{mul(a, a)}; });
  p.run();
  const Tensor& w = p.outputs()[0];
  const Tensor y = sum(conv2d(x, w));  // packs w, and keeps it for the gradient by x
  Tensor same = a;
  same.mutable_data<float>()[7] = 100;

  p.run();

  EXPECT_THROW(grad(y, {x}), Error);
  EXPECT_TRUE(test::bitwise_equal(conv2d(x, w).detached(), conv2d(x, mul(a, a)).detached()));
}

// A training loop may capture its step after it has begun: what it has kept stays good.
TEST(CaptureTest, WritesNothingAndSoRaisesNoVersion) {
  Tensor w = uniform({4}, -1, 1, 1).require_grad();
  optim::Sgd sgd({w});
  const Tensor loss = sum(square(w) * w);
  const uint32_t version = w.value->version();

  const Program p = capture([&] {
    const Tensor now = sum(square(w));
    sgd.step(grad(now, {w}));
    return now;
  });

  EXPECT_EQ(w.value->version(), version);
  EXPECT_TRUE(test::bitwise_equal(grad(loss, {w})[0], (3 * square(w)).detached()));
  EXPECT_THROW(capture([&]() -> Tensor {
                 w.copy_from(ones({4}));
                 fail("half-way");
               }),
               Error);
  EXPECT_EQ(w.value->version(), version);
}

TEST(CaptureTest, TakesFunctionsOfOneTensorOfAnyListAndOfNone) {
  Tensor x = ones({2});
  Program one = capture([&] { return x + 1; });
  Program two = capture([&] { return std::vector<Tensor>{x + 2, x * 3}; });
  Program none = capture([&] { x.copy_from(x * 2); });
  none.run();
  one.run();
  two.run();
  EXPECT_EQ(one.outputs()[0].at({0}), 3);
  EXPECT_EQ(two.outputs()[1].at({0}), 6);
  EXPECT_TRUE(none.outputs().empty());
  StaticFunction doubled([](std::span<const Tensor> in) { return in[0] * 2; });
  EXPECT_EQ(doubled({x})[0].at({1}), 4);
}

TEST(CaptureTest, WhatWouldBeFrozenIsRefused) {
  Tensor x = ones({2});
  const auto refuses = [](auto step, const char* sentence) {
    EXPECT_TRUE(test::refused([&] { capture(step); }, sentence));
  };
  refuses([] { return uniform({2}, 0, 1, 1); }, "uniform: a step is being captured, and this would be done once");
  refuses([] { return normal({2}, 0, 1, 1); }, "normal: a step is being captured");
  refuses([] { return Tensor::from({1.0f}, {1}); }, "from: a step is being captured");
  refuses([&] { x.mutable_data<float>()[0] = 2; }, "mutable_data: a step is being captured");
  Tensor rebound = x;
  capture([&] { rebound = rebound + 1; });
  EXPECT_TRUE(test::refused([&] { rebound + 1; }, "write into it with copy_from"));
  EXPECT_TRUE(test::refused([&] { rebound.data<float>(); }, "write into it with copy_from"));
  StaticFunction f([](std::span<const Tensor> in) { return in[0] * 2; });
  x.require_grad();
  EXPECT_TRUE(test::refused([&] { f({x}); }, "needs a gradient, and a replay puts nothing on the tape"));
  const NoGrad off;
  EXPECT_EQ(f({x})[0].at({0}), 2);
}

TEST(CaptureTest, AnEmptyProgramRefusesToRun) {
  Program p;
  EXPECT_TRUE(test::refused([&] { p.run(); }, "the program is empty; make it with capture"));
  EXPECT_TRUE(test::refused([&] { p.outputs(); }, "the program is empty"));
  EXPECT_TRUE(test::refused([] { capture({}); }, "capture: the function is empty"));
  EXPECT_TRUE(test::refused([] { StaticFunction({}); }, "captured function: the function is empty"));
}

TEST(CaptureTest, ACapturedFunctionRefusesEmptyTensorsInEveryCall) {
  StaticFunction f([](std::span<const Tensor> in) { return TensorList{mul(in[0], in[0])}; });
  f({Tensor::from<float>({2}, Shape{1})});
  EXPECT_TRUE(test::refused([&] { f({Tensor()}); }, "captured function: input 0 is an empty tensor"));
}

}  // namespace
}  // namespace plumb
