// How a step of any optimizer runs: as one kernel, which threads, capture and warm caches do not change.
#include <gtest/gtest.h>

#include "core/memory.h"
#include "dispatch/recorder.h"
#include "graph/program.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/optim/optimizers.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::optim {
namespace {

using test::bitwise_equal;

// Steps that are lost in bf16 one by one: the masters go the way of f32, and the parameters are their rounded copies.
TEST(OptimizerRun, MastersKeepWhatBf16Loses) {
  for (const Make& make : every_optimizer()) {
    const Tensor w16 = to(parameters_of(kTwo, 1)[0].detached(), DType::kBf16);
    Tensor narrow = w16.clone(), wide = to(w16, DType::kF32);
    narrow.require_grad(), wide.require_grad();
    const auto of_narrow = make(std::vector{narrow}), of_wide = make(std::vector{wide});
    const Tensor g16 = to(made(kTwo, 5)[0], DType::kBf16), g = to(g16, DType::kF32);

    for (int i = 0; i < 20; ++i) {
      of_narrow->step(std::vector{g16});
      of_wide->step(std::vector{g});
    }

    const auto [name, master] = of_narrow->state().back();
    EXPECT_EQ(name, "master.0");
    EXPECT_TRUE(bitwise_equal(master, wide.detached()));
    EXPECT_TRUE(bitwise_equal(narrow.detached(), to(wide.detached(), DType::kBf16)));
    EXPECT_FALSE(bitwise_equal(narrow.detached(), w16));
  }
}

// With a copy in bf16 a parameter goes where its gradient in f32 takes it, and the one beside it, too.
TEST(OptimizerRun, CopiesAreWrittenRounded) {
  for (const Make& make : every_optimizer()) {
    const auto with = parameters_of(kTwo, 1), without = parameters_of(kTwo, 1);
    const auto keeps = make(with), plain = make(without);
    auto g = made(kTwo, 5);
    const Tensor g16 = to(g[0], DType::kBf16), copy = to(with[0].detached(), DType::kBf16);
    g[0] = to(g16, DType::kF32);
    for (int i = 0; i < 3; ++i) {
      keeps->step(std::vector{g16, g[1]}, std::vector{copy, Tensor()});
      plain->step(g);
      for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(bitwise_equal(with[k].detached(), without[k].detached()));
      EXPECT_TRUE(bitwise_equal(copy, to(with[0].detached(), DType::kBf16)));
    }
  }
}

TEST(OptimizerRun, IsOneKernelOfTheUpdatePhase) {
  for (const Make& make : every_optimizer()) {
    const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
    const auto optimizer = make(w);
    int kernels = 0;
    {
      const test::AfterEveryKernel watch([&](const PreparedKernel&, const Launch&) {
        ++kernels;
        EXPECT_EQ(detail::ctx.phase, Phase::kUpdate);
      });
      optimizer->step(g);
    }

    EXPECT_EQ(kernels, 1);
    EXPECT_EQ(detail::ctx.phase, Phase::kForward);
  }
}

TEST(OptimizerRun, BytesCountReadsAndWrites) {
  const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
  Adam adam(w, {});
  KernelInfo info;
  {
    const test::AfterEveryKernel watch([&](const PreparedKernel& p, const Launch&) { info = p.kernel->info(); });
    adam.step(g);
  }

  EXPECT_EQ(info.bytes,
            17 * 4 * 7 + 4 + 2 * 8);  // reads w g m v, writes w m v; reads the rate, reads and writes the step
  EXPECT_EQ(info.name, "plumb:adam");
  EXPECT_EQ(info.algorithm, "fused");
}

// Tensors of all sizes, so that threads meet within a tensor, at its end and in an empty one.
TEST(OptimizerRun, AnyNumberOfThreadsGivesTheSameBits) {
  const Shape shapes[] = {{1}, {0}, {70001}, {63}, {64, 65}, {1025}, {2, 3, 0}, {300, 401}, {7}};
  for (const Make& make : every_optimizer()) {
    for (const DType t : {DType::kF32, DType::kF64}) {
      test::expect_same_with_any_threads([&] {
        const auto w = parameters_of(shapes, 1, t);
        const auto optimizer = make(w);
        for (uint64_t step = 0; step < 3; ++step) optimizer->step(made(shapes, 100 * step + 50, t));
        return w;
      });
    }
  }
}

// The same elements in one tensor or in many: nothing depends on where a tensor ends.
TEST(OptimizerRun, TensorsAreUpdatedAloneAsTogether) {
  const Shape shapes[] = {{33}, {129}, {1000}};
  for (const Make& make : every_optimizer()) {
    const auto together = parameters_of(shapes, 1, DType::kF64), alone = parameters_of(shapes, 1, DType::kF64);
    const auto g = made(shapes, 9, DType::kF64);
    make(together)->step(g);
    for (size_t i = 0; i < 3; ++i) make({&alone[i], 1})->step({&g[i], 1});

    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(bitwise_equal(alone[i], together[i]));
  }
}

// The rate and the number of the step are tensors, so that replays of one captured step are steps of their own.
TEST(OptimizerRun, ACapturedStepIsTheEagerOneBitForBit) {
  for (const Make& make : every_optimizer()) {
    const auto eager = parameters_of(kTwo, 1), captured = parameters_of(kTwo, 1);
    const auto x = made(kTwo, 7);
    const auto by_hand = make(eager), by_program = make(captured);
    const auto step = [&x](std::span<const Tensor> w, Optimizer& optimizer) {
      const Tensor loss = sum(square(w[0] - x[0])) + sum(square(w[1] * x[1]));
      optimizer.step(grad(loss, w));
      return loss;
    };
    Program program = capture([&] { return TensorList{step(captured, *by_program)}; });

    for (int t = 0; t < 8; ++t) {
      const double rate = 0.1 / (1 + t);
      by_hand->set_learning_rate(rate);
      by_program->set_learning_rate(rate);
      const Tensor loss = step(eager, *by_hand);
      program.run();

      EXPECT_TRUE(bitwise_equal(program.outputs()[0], loss));
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(captured[i], eager[i]));
    }
    EXPECT_EQ(by_program->steps(), 8);
  }
}

// Eager steps, replayed ones, and what a checkpoint says, whoever was last.
TEST(OptimizerRun, StepsAreCountedWhereverTheyAreDone) {
  for (const Make& make : every_optimizer()) {
    const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
    const auto optimizer = make(w);
    Program program = capture([&] {
      optimizer->step(g);
      EXPECT_TRUE(test::refused([&] { optimizer->steps(); }, "steps() is asked while a step is captured"));
    });
    EXPECT_EQ(optimizer->steps(), 0) << "nothing was done while capturing";
    program.run();
    optimizer->step(g);
    program.run();
    EXPECT_EQ(optimizer->steps(), 3);

    Tensor step = optimizer->state()[1].second;
    EXPECT_EQ(step.data<int64_t>()[0], 3);
    step.copy_from(full({}, 40, DType::kI64));
    program.run();
    EXPECT_EQ(optimizer->steps(), 41);
    step.mutable_data<int64_t>()[0] = 7;
    EXPECT_EQ(optimizer->steps(), 7);
    optimizer->step(g);
    program.run();
    EXPECT_EQ(optimizer->steps(), 9);
    EXPECT_EQ(step.data<int64_t>()[0], 9);
  }
}

// Throws before the update, or behind it.
class Thrower final : public Observer {
 public:
  explicit Thrower(bool before) : before_(before) {}
  void before(const PreparedKernel& p) override {
    if (before_ && p.kind->name == std::string_view("sgd")) fail("stop");
  }
  void after(const PreparedKernel& p, const Launch&) override {
    if (!before_ && p.kind->name == std::string_view("sgd")) fail("stop");
  }

 private:
  bool before_;
};

TEST(OptimizerRun, StepsThatThrowCountIfTheyWereDone) {
  const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
  Sgd sgd(w, {});
  Program program = capture([&] { sgd.step(g); });
  program.run();
  int64_t expected = 1;
  for (const bool before : {true, false}) {
    Thrower thrower(before);
    const ObserverScope watch(&thrower);
    EXPECT_TRUE(test::refused([&] { sgd.step(g); }, "stop"));
    EXPECT_EQ(sgd.steps(), expected += before ? 0 : 1);
    EXPECT_TRUE(test::refused([&] { program.run(); }, "stop"));
    EXPECT_EQ(sgd.steps(), expected += before ? 0 : 1);
  }
  program.run();
  EXPECT_EQ(sgd.steps(), expected + 1);
}

TEST(OptimizerRun, AWarmStepPreparesAndAllocatesNothing) {
  const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
  Adam adam(w, {});
  adam.step(g);
  const CacheStats kernels = cache_stats();
  const int64_t allocations = cpu_memory().stats().allocations;

  for (int i = 0; i < 10; ++i) {
    adam.set_learning_rate(0.1 * i);
    adam.step(g);
  }

  EXPECT_EQ(cache_stats().prepared, kernels.prepared);
  EXPECT_EQ(cpu_memory().stats().allocations, allocations);
}

}  // namespace
}  // namespace plumb::optim
