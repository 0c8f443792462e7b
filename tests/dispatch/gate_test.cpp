#include "dispatch/gate.h"

#include <gtest/gtest.h>

#include "dispatch/pack.h"
#include "dispatch/policy.h"
#include "kernels/accumulate.h"
#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"
#include "tests/support/scripted.h"

namespace plumb {

using detail::Scoped;
namespace {

using test::KernelLog;
using test::refused;

float* floats(void* p) { return static_cast<float*>(p); }

// y = a + b and z = a - b; raises its third input by one.
struct SumAndDifference {
  static constexpr char kName[] = "sum_and_difference";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>& p, Candidates& candidates) {
    candidates.add("loop", [n = p.in[0].numel()] {
      return make_kernel("test:function", [n](const Launch& l) {
        for (int64_t i = 0; i < n; ++i) {
          floats(l.out[0])[i] = floats(l.in[0])[i] + floats(l.in[1])[i];
          floats(l.out[1])[i] = floats(l.in[0])[i] - floats(l.in[1])[i];
        }
        floats(l.in[2])[0] += 1;
      });
    });
  }
};

// Writes its workspace full and copies its last element out.
struct NeedsWorkspace {
  static constexpr char kName[] = "needs_workspace";
  struct Params {
    int64_t bytes;
  };
  static void cpu(const Problem<Params>& p, Candidates& candidates) {
    candidates.add("loop", [bytes = static_cast<size_t>(p.params.bytes)] {
      auto kernel = make_kernel("test:function", [bytes](const Launch& l) {
        std::memset(l.workspace, 3, bytes);
        floats(l.out[0])[0] = static_cast<float>(static_cast<const unsigned char*>(l.workspace)[bytes - 1]);
      });
      kernel->info().workspace_bytes = bytes;
      return kernel;
    });
  }
};

// Reads its input as a pack: the elements doubled.
struct ReadsPack {
  static constexpr char kName[] = "reads_pack";
  using Params = NoParams;
  static Layout pack() {
    const auto make = [](const TensorSpec& plain) {
      return make_kernel("test:function", [n = plain.numel()](const Launch& l) {
        for (int64_t i = 0; i < n; ++i) floats(l.out[0])[i] = 2 * floats(l.in[0])[i];
      });
    };
    return register_pack(std::string("gate_test doubled"), {"doubled", 4 * sizeof(float), make});
  }
  static void cpu(const Problem<NoParams>&, Candidates& candidates) {
    candidates.add("loop", [] {
      auto kernel =
          make_kernel("test:function", [](const Launch& l) { std::memcpy(l.out[0], l.in[0], 4 * sizeof(float)); });
      kernel->info().packs.push_back({0, pack()});
      return kernel;
    });
  }
};

Tensor four(float a, float b, float c, float d) { return Tensor::from<float>({a, b, c, d}, Shape{4}); }
int64_t live(MemoryClass c) { return cpu_memory().stats().live_bytes[static_cast<size_t>(c)]; }

TEST(Gate, MakesTheOutputsAndRuns) {
  const Tensor a = four(1, 2, 3, 4), b = four(10, 20, 30, 40);
  Tensor counter = Tensor::from<float>({0}, Shape{});

  const auto [sum, difference] = run<SumAndDifference>({}, {a, b, counter}, {a.spec(), a.spec()}, Writes{2, 1});

  EXPECT_TRUE(test::equal(sum, four(11, 22, 33, 44)));
  EXPECT_TRUE(test::equal(difference, four(-9, -18, -27, -36)));
}

TEST(Gate, WritesRaiseTheVersionsOfWhatIsWrittenOnly) {
  const Tensor a = four(1, 2, 3, 4), b = four(0, 0, 0, 0);
  const Tensor counter = Tensor::from<float>({0}, Shape{});
  const uint32_t before_a = a.value->version(), before = counter.value->version();

  run<SumAndDifference>({}, {a, b, counter}, {a.spec(), a.spec()}, Writes{2, 1});

  EXPECT_EQ(a.value->version(), before_a);
  EXPECT_EQ(counter.value->version(), before + 1);
  EXPECT_EQ(counter.item(), 1);
}

TEST(Gate, UpdatesWriteInPlace) {
  const Tensor a = four(1, 2, 3, 4), b = four(1, 1, 1, 1);
  update<Accumulate>({}, {a, b}, Writes{0, 1});
  EXPECT_TRUE(test::equal(a, four(2, 3, 4, 5)));
  EXPECT_EQ(a.value->version(), 1u);
}

TEST(Gate, RefusesDevicesWithoutKernels) {
  if (detail::has_cuda_kernels()) GTEST_SKIP() << "this library has CUDA kernels";
  const DeviceScope on(test::a_described_device());
  EXPECT_TRUE(refused([] { zeros(TensorSpec(Shape{4})); },
                      "fill: there is no kernel for cuda:0 in this program; bring the tensors to the cpu"));
}

TEST(Gate, RefusesCapturedTensorsOutsideOfTheirStep) {
  const Tensor captured(detail::Value::make(TensorSpec(Shape{4}), MemoryClass::kActivation, Device{}, true));
  EXPECT_TRUE(
      refused([&] { add(four(1, 2, 3, 4), captured); }, "add: input 1 f32 (4) nchw comes from a captured step"));
}

TEST(Gate, OutputsTakeTheMemoryClassOfTheScope) {
  const int64_t before = live(MemoryClass::kState);
  const MemoryScope state(MemoryClass::kState);
  const Tensor x = zeros(TensorSpec(Shape{1024}));
  EXPECT_EQ(live(MemoryClass::kState) - before, 4096);
}

TEST(Gate, TheWorkspaceGrowsAndIsKept) {
  const TensorSpec one(Shape{1});
  EXPECT_EQ(run<NeedsWorkspace>({100000}, {}, one).item(), 3);
  const int64_t grown = live(MemoryClass::kWorkspace);
  EXPECT_GE(grown, 100000);
  EXPECT_EQ(run<NeedsWorkspace>({5000}, {}, one).item(), 3);
  EXPECT_EQ(live(MemoryClass::kWorkspace), grown);
  EXPECT_EQ(run<NeedsWorkspace>({1000000}, {}, one).item(), 3);
  EXPECT_GE(live(MemoryClass::kWorkspace), 1000000);
}

TEST(Gate, WhatIsWrittenWhenAnObserverThrowsCountsAsWritten) {
  const Tensor a = four(1, 2, 3, 4), counter = Tensor::from<float>({0}, Shape{});
  const uint32_t before = counter.value->version();
  {
    const test::AfterEveryKernel thrower(
        [](const PreparedKernel& p, const Launch&) { fail("{}: seen", p.kind->name); });
    const auto work = [&] { run<SumAndDifference>({}, {a, a, counter}, {a.spec(), a.spec()}, Writes{2, 1}); };
    EXPECT_TRUE(refused(work, "sum_and_difference: seen"));
  }
  EXPECT_EQ(counter.item(), 1);
  EXPECT_EQ(counter.value->version(), before + 1);
}

// Runs an op that needs a larger workspace than any before it.
struct Grower : Observer {
  void before(const PreparedKernel&) override {
    const ObserverScope alone(nullptr);
    run<NeedsWorkspace>({4000000}, {}, TensorSpec(Shape{1}));
  }
};

TEST(Gate, ObserversMayRunOps) {
  const TensorSpec one(Shape{1});
  run<NeedsWorkspace>({1000}, {}, one);
  Grower grower;
  const ObserverScope scope(&grower);
  EXPECT_EQ(run<NeedsWorkspace>({2000}, {}, one).item(), 3);
}

TEST(Gate, PacksAreMadeOncePerVersion) {
  Tensor w = four(1, 2, 3, 4);
  KernelLog log;
  EXPECT_TRUE(test::equal(run<ReadsPack>({}, {w}, w.spec()), four(2, 4, 6, 8)));
  EXPECT_EQ(log.ran, (std::vector<std::string>{"repack:repack", "reads_pack:loop"}));

  run<ReadsPack>({}, {w}, w.spec());
  EXPECT_EQ(log.ran.size(), 3u);  // the pack was still good

  w.mutable_data<float>()[0] = 10;
  EXPECT_TRUE(test::equal(run<ReadsPack>({}, {w}, w.spec()), four(20, 4, 6, 8)));
  EXPECT_EQ(log.ran.size(), 5u);
}

// The pack stands in the input's place when it runs: the version that rises is the input's.
TEST(Gate, AWrittenInputThatIsPackedIsWritten) {
  const Tensor w = four(1, 2, 3, 4);
  run<ReadsPack>({}, {w}, w.spec(), Writes{0, 1});
  EXPECT_EQ(w.value->version(), 1u);
  KernelLog log;
  run<ReadsPack>({}, {w}, w.spec());
  EXPECT_EQ(log.ran, (std::vector<std::string>{"repack:repack", "reads_pack:loop"}));
}

TEST(Gate, PacksSeeWritesThroughAliases) {
  const Tensor w = four(1, 2, 3, 4);
  Tensor alias(detail::Value::alias(w.value, TensorSpec(Shape{4})));
  EXPECT_TRUE(test::equal(run<ReadsPack>({}, {w}, w.spec()), four(2, 4, 6, 8)));
  alias.mutable_data<float>()[1] = 5;
  EXPECT_TRUE(test::equal(run<ReadsPack>({}, {w}, w.spec()), four(2, 10, 6, 8)));
}

TEST(Gate, PacksDieWithTheirValue) {
  const int64_t before = live(MemoryClass::kPack);
  {
    const Tensor w = four(1, 2, 3, 4);
    run<ReadsPack>({}, {w}, w.spec());
    EXPECT_GT(live(MemoryClass::kPack), before);
  }
  EXPECT_EQ(live(MemoryClass::kPack), before);
}

// The weights of a convolution in oneDNN's own format, written as an optimizer writes them.
TEST(Gate, ConvolutionsUseTheWeightsAsTheyAreNow) {
  const PolicyScope direct({.algorithm = algorithm_id("direct")});
  const Tensor x = test::small_integers(TensorSpec(Shape{2, 16, 8, 8}, DType::kF32, Layout::kNhwc), 1);
  Tensor w = test::small_integers(TensorSpec(Shape{32, 16, 3, 3}), 2);
  const Tensor before = conv2d(x, w);

  for (float& v : w.mutable_data<float>()) v *= 2;

  EXPECT_TRUE(test::equal(conv2d(x, w), before * 2.0));
}

// A pack that nobody asked for between two writes is of another layout, or of a short batch.
TEST(Gate, PacksThatTwoWritesHavePassedGo) {
  const Tensor x = test::small_integers(TensorSpec(Shape{2, 16, 8, 8}, DType::kF32, Layout::kNhwc), 1);
  Tensor w = test::small_integers(TensorSpec(Shape{32, 16, 3, 3}), 2);
  const int64_t before = live(MemoryClass::kPack);
  const auto bytes_after = [&](const char* algorithm) {
    const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
    conv2d(x, w);
    return live(MemoryClass::kPack) - before;
  };
  const int64_t direct = bytes_after("direct"), both = bytes_after("winograd_f2x2");
  ASSERT_GT(direct, 0);
  ASSERT_GT(both, direct);

  w.mutable_data<float>();
  EXPECT_EQ(bytes_after("winograd_f2x2"), both);
  w.mutable_data<float>();
  EXPECT_EQ(bytes_after("winograd_f2x2"), both - direct);
  EXPECT_EQ(bytes_after("direct"), both);
}

TEST(Gate, ObserversSeeEveryKernelAndItsInfo) {
  struct Watch final : Observer {
    void before(const PreparedKernel& p) override { names.push_back(std::string("before ") + p.kind->name); }
    void after(const PreparedKernel& p, const Launch& l) override {
      names.push_back(std::string("after ") + p.kind->name);
      first = floats(l.out[0])[0];
      bytes = p.kernel->info().bytes;
    }
    std::vector<std::string> names;
    float first = 0;
    double bytes = 0;
  } watch;
  {
    const ObserverScope scope(&watch);
    add(four(1, 2, 3, 4), four(1, 1, 1, 1));
  }
  add(four(1, 2, 3, 4), four(1, 1, 1, 1));
  EXPECT_EQ(watch.names, (std::vector<std::string>{"before add", "after add"}));
  EXPECT_EQ(watch.first, 2);
  EXPECT_EQ(watch.bytes, 48);
}

TEST(Gate, FailedRunsLeaveNothingBehind) {
  const int64_t before = cpu_memory().stats().live_total();
  const Tensor a = four(1, 2, 3, 4);
  const auto work = [&] { run<Accumulate>({}, {a, Tensor()}, a.spec()); };
  EXPECT_TRUE(refused(work, "accumulate: input 1 is an empty tensor"));
  EXPECT_EQ(cpu_memory().stats().live_total(), before + 256);
}

}  // namespace
}  // namespace plumb
