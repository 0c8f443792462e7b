// What the optimizers share: state, versions, phases, capture, threads and allocation. Their numbers: golden_test.cpp.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>

#include "core/memory.h"
#include "graph/program.h"
#include "kernels/recorder.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::optim {
namespace {

using test::bitwise_equal;
using test::random_tensor;
using test::refused;

std::vector<Tensor> made(std::span<const Shape> shapes, uint64_t seed, DType t = DType::kF32) {
  std::vector<Tensor> all;
  for (const Shape& s : shapes) all.push_back(random_tensor(TensorSpec(s, t), ++seed));
  return all;
}
std::vector<Tensor> parameters_of(std::span<const Shape> shapes, uint64_t seed, DType t = DType::kF32) {
  std::vector<Tensor> all = made(shapes, seed, t);
  for (Tensor& w : all) w.require_grad();
  return all;
}
const Shape kTwo[] = {{3, 4}, {5}};

using Make = std::function<std::unique_ptr<Optimizer>(std::span<const Tensor>)>;
template <class O>
Make maker(typename O::Options options) {
  return [options](std::span<const Tensor> w) { return std::make_unique<O>(w, options); };
}
std::vector<Make> every_optimizer() {
  return {maker<Sgd>({.learning_rate = 0.1}),
          maker<Sgd>({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-2}),
          maker<Sgd>({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-2, .convention = Convention::kKeras}),
          maker<Adam>({.weight_decay = 1e-2}),
          maker<Adam>(Adam::Options::defaults(Convention::kTensorFlow1)),
          maker<AdamW>({}),
          maker<RmsProp>({.momentum = 0.9, .centered = true}),
          maker<RmsProp>({.momentum = 0.9, .centered = true, .weight_decay = 1e-2, .convention = Convention::kKeras})};
}

TEST(OptimizerTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  const Shape shapes[] = {{1}, {31}, {0, 3}, {33}, {1025}, {16, 3, 3, 3}, {}};
  for (const Make& make : every_optimizer()) {
    const auto w = parameters_of(shapes, 1);
    const auto optimizer = make(w);
    test::KernelCheck check(8);

    optimizer->step(made(shapes, 20));

    EXPECT_EQ(check.checked().size(), 2u) << "the kernel and its reference";
  }
}

TEST(OptimizerTest, FollowsItsLearningRateTensor) {
  const std::vector<Tensor> w{Tensor::from<double>({1.0, 2.0}, {2}).require_grad()};
  const std::vector<Tensor> g{Tensor::from<double>({1.0, -1.0}, {2})};
  Sgd sgd(w, {.learning_rate = 0.5});

  sgd.step(g);
  EXPECT_EQ(test::to_doubles(w[0]), (std::vector{0.5, 2.5}));

  sgd.set_learning_rate(0.25);
  sgd.step(g);
  EXPECT_EQ(test::to_doubles(w[0]), (std::vector{0.25, 2.75}));

  sgd.learning_rate().mutable_data<double>()[0] = 0;
  sgd.step(g);
  EXPECT_EQ(test::to_doubles(w[0]), (std::vector{0.25, 2.75}));
  EXPECT_EQ(sgd.steps(), 3);
}

TEST(OptimizerTest, NamesItsState) {
  const auto w = parameters_of(kTwo, 1);
  const auto names = [](const Optimizer& o) {
    std::string all;
    for (const auto& [name, tensor] : o.state()) all += name + " ";
    return all;
  };

  EXPECT_EQ(names(Sgd(w, {})), "learning_rate step ");
  EXPECT_EQ(names(Sgd(w, {.momentum = 0.9})), "learning_rate step velocity.0 velocity.1 ");
  EXPECT_EQ(names(Adam(w, {})), "learning_rate step mean.0 mean.1 mean_square.0 mean_square.1 ");
  EXPECT_EQ(names(RmsProp(w, {})), "learning_rate step mean_square.0 mean_square.1 ");
  EXPECT_EQ(names(RmsProp(w, {.momentum = 0.9, .centered = true})),
            "learning_rate step mean_square.0 mean_square.1 mean.0 mean.1 velocity.0 velocity.1 ");
}

TEST(OptimizerTest, StateIsCountedAsStateAndFitsItsParameter) {
  const Shape shapes[] = {{6, 2, 3, 3}, {7}};
  auto w = made(shapes, 1, DType::kF64);
  w[0] = test::converted(w[0], DType::kF64, Layout::kNhwc);
  for (Tensor& t : w) t.require_grad();
  const int64_t before = cpu_memory().stats().live_bytes[static_cast<size_t>(MemoryClass::kState)];

  const Adam adam(w, {});

  EXPECT_GE(cpu_memory().stats().live_bytes[static_cast<size_t>(MemoryClass::kState)] - before, 2 * (108 + 7) * 8);
  const auto state = adam.state();
  EXPECT_EQ(state[0].second.dtype(), DType::kF64);
  EXPECT_EQ(state[2].second.spec(), w[0].spec());
  EXPECT_EQ(state[5].second.spec(), w[1].spec());
}

// A checkpoint: what state() names, and the parameters.
TEST(OptimizerTest, GoesOnFromItsStateBitForBit) {
  for (const Make& make : every_optimizer()) {
    const auto w = parameters_of(kTwo, 1), again = parameters_of(kTwo, 1);
    const auto straight = make(w), first = make(again);
    for (uint64_t t = 0; t < 6; ++t) straight->step(made(kTwo, 10 + t));
    for (uint64_t t = 0; t < 3; ++t) first->step(made(kTwo, 10 + t));

    const auto second = make(again);
    const auto from = first->state();
    const auto to = second->state();
    for (size_t i = 0; i < from.size(); ++i) {
      std::memcpy(to[i].second.value->data, from[i].second.value->data, from[i].second.bytes());
    }
    for (uint64_t t = 3; t < 6; ++t) second->step(made(kTwo, 10 + t));

    EXPECT_EQ(second->steps(), 6);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(again[i], w[i]));
  }
}

TEST(OptimizerTest, RaisesTheVersionsOfWhatItWritesOnce) {
  const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
  Adam adam(w, {});
  const auto state = adam.state();
  std::vector<uint32_t> before;
  for (const auto& [name, t] : state) before.push_back(t.value->version());
  const uint32_t weight = w[1].value->version(), gradient = g[1].value->version();

  adam.step(g);

  EXPECT_EQ(state[0].second.value->version(), before[0]);  // the learning rate is only read
  for (size_t i = 1; i < state.size(); ++i) EXPECT_EQ(state[i].second.value->version(), before[i] + 1);
  EXPECT_EQ(w[1].value->version(), weight + 1);
  EXPECT_EQ(g[1].value->version(), gradient);
}

TEST(OptimizerTest, AGraphFromBeforeTheStepIsRefused) {
  Tensor w = random_tensor(TensorSpec({4}, DType::kF64), 1).require_grad();
  Sgd sgd({&w, 1}, {.learning_rate = 0.1});
  const Tensor stale = sum(square(w)), loss = sum(square(w));

  sgd.step(grad(loss, {w}));

  EXPECT_TRUE(refused([&] { grad(stale, {w}); }, "was written to in between"));
  EXPECT_NO_THROW(grad(sum(square(w)), {w}));
}

TEST(OptimizerTest, MinimisesWithoutLeavingATape) {
  for (const Make& make : every_optimizer()) {
    Tensor w = Tensor::from<double>({1.0, -2.0, 0.5}, {3}).require_grad();
    const auto optimizer = make({&w, 1});
    const Ref<Node> leaf = w.node;
    const double before = sum(square(w)).item();
    for (int i = 0; i < 50; ++i) optimizer->step(grad(sum(square(w)), {w}));

    EXPECT_LT(sum(square(w)).item(), before);
    EXPECT_EQ(w.node.get(), leaf.get());
    EXPECT_FALSE(optimizer->learning_rate().requires_grad());
  }
}

struct PhaseLog : Observer {
  Phase phase = Phase::kForward;
  int kernels = 0;
  void before(const Prepared&) override {
    phase = ctx.phase;
    ++kernels;
  }
};

TEST(OptimizerTest, IsOneKernelOfTheUpdatePhase) {
  for (const Make& make : every_optimizer()) {
    const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
    const auto optimizer = make(w);
    PhaseLog log;
    {
      const Scoped<Observer*> watch(ctx.observer, &log);
      optimizer->step(g);
    }

    EXPECT_EQ(log.kernels, 1);
    EXPECT_EQ(log.phase, Phase::kUpdate);
    EXPECT_EQ(ctx.phase, Phase::kForward);
  }
}

TEST(OptimizerTest, BytesCountReadsAndWrites) {
  const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
  Adam adam(w, {});
  struct BytesLog : Observer {
    double bytes = 0;
    std::string name, algorithm;
    void after(const Prepared& p, const Launch&) override {
      bytes = p.kernel->info().bytes;
      name = p.kernel->info().name;
      algorithm = p.kernel->info().algorithm;
    }
  } log;
  {
    const Scoped<Observer*> watch(ctx.observer, &log);
    adam.step(g);
  }

  EXPECT_EQ(log.bytes,
            17 * 4 * 7 + 4 + 2 * 8);  // reads w g m v, writes w m v; reads the rate, reads and writes the step
  EXPECT_EQ(log.name, "plumb:adam");
  EXPECT_EQ(log.algorithm, "fused");
}

// Tensors of all sizes, so that threads meet within a tensor, at its end and in an empty one.
TEST(OptimizerTest, AnyNumberOfThreadsGivesTheSameBits) {
  const Shape shapes[] = {{1}, {0}, {70001}, {63}, {64, 65}, {1025}, {2, 3, 0}, {300, 401}, {7}};
  for (const Make& make : every_optimizer()) {
    for (const DType t : {DType::kF32, DType::kF64}) {
      std::vector<Tensor> results[2];
      for (int threads = 1; threads <= 2; ++threads) {
        const ChoiceScope choice(ctx.choice);
        const int before = plumb::threads();
        set_threads(threads);
        auto& w = results[threads - 1] = parameters_of(shapes, 1, t);
        const auto optimizer = make(w);
        for (uint64_t step = 0; step < 3; ++step) optimizer->step(made(shapes, 100 * step + 50, t));
        set_threads(before);
      }
      for (size_t i = 0; i < std::size(shapes); ++i) {
        EXPECT_TRUE(bitwise_equal(results[1][i], results[0][i])) << shapes[i].numel();
      }
    }
  }
}

// The same elements in one tensor or in many: nothing depends on where a tensor ends.
TEST(OptimizerTest, TensorsAreUpdatedAloneAsTogether) {
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
TEST(OptimizerTest, ACapturedStepIsTheEagerOneBitForBit) {
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

TEST(OptimizerTest, AWarmStepPreparesAndAllocatesNothing) {
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
