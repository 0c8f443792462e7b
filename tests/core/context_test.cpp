#include "core/context.h"
#include "core/runtime.h"

#include <gtest/gtest.h>

#include <omp.h>

#include <thread>

#include "core/tensor.h"
#include "tests/support/compare.h"

namespace plumb {

using detail::Context;
namespace {

TEST(Context, ScopesRestoreWhatWasBefore) {
  const Context before = detail::ctx;
  {
    const NoGrad no_grad;
    const MemoryScope memory(MemoryClass::kState);
    const PolicyScope policy({.search = Search::kMeasured, .threads = 1});
    EXPECT_FALSE(detail::ctx.recording);
    EXPECT_EQ(detail::ctx.memory_class, MemoryClass::kState);
    EXPECT_EQ(detail::ctx.policy.search, Search::kMeasured);
    {
      const detail::Scoped<bool> again(detail::ctx.recording, true);
      EXPECT_TRUE(detail::ctx.recording);
    }
    EXPECT_FALSE(detail::ctx.recording);
  }
  EXPECT_EQ(detail::ctx.recording, before.recording);
  EXPECT_EQ(detail::ctx.memory_class, before.memory_class);
  EXPECT_TRUE(detail::ctx.policy == before.policy);
}

TEST(Context, ScopesRestoreAfterAnException) {
  try {
    const NoGrad no_grad;
    fail("out");
  } catch (const Error&) {
  }
  EXPECT_TRUE(detail::ctx.recording);
}

TEST(Context, EachThreadHasItsOwn) {
  const NoGrad no_grad;
  bool recording = false;

  std::thread([&] { recording = detail::ctx.recording; }).join();

  EXPECT_TRUE(recording);
}

TEST(Context, ValuesTakeTheMemoryClassOfTheScope) {
  const MemoryStats before = cpu_memory().stats();
  const auto live = [&](MemoryClass c) {
    const auto i = static_cast<size_t>(c);
    return cpu_memory().stats().live_bytes[i] - before.live_bytes[i];
  };
  {
    const MemoryScope memory(MemoryClass::kState);
    const detail::Ref<detail::Value> v =
        detail::Value::make(TensorSpec(Shape{1024}), detail::ctx.memory_class, Device{});
    EXPECT_EQ(live(MemoryClass::kState), 4096);
    EXPECT_EQ(live(MemoryClass::kActivation), 0);
  }
  EXPECT_EQ(live(MemoryClass::kState), 0);
}

TEST(Context, AlgorithmsHaveOneNumberEach) {
  EXPECT_EQ(algorithm_id(""), 0);
  const uint16_t direct = algorithm_id("direct"), gemm = algorithm_id("gemm");
  EXPECT_NE(direct, 0);
  EXPECT_NE(direct, gemm);
  EXPECT_EQ(algorithm_id("direct"), direct);
  EXPECT_EQ(algorithm_name(direct), "direct");
  EXPECT_TRUE(test::refused([] { algorithm_name(65535); }, "algorithm number 65535 is unknown; take one from "));
  EXPECT_TRUE(
      test::refused([] { algorithm_id("winogard"); }, "algorithm \"winogard\" is unknown; use one of direct, "));
  const uint16_t own = register_algorithm("winogard");
  EXPECT_EQ(algorithm_id("winogard"), own);
  EXPECT_EQ(algorithm_name(algorithm_id("winograd")), "winograd");  // a family
}

TEST(Context, AChoiceThatMeansNothingIsRefused) {
  EXPECT_TRUE(test::refused([] { PolicyScope({.algorithm = 65535}); }, "algorithm number 65535 is unknown"));
  EXPECT_TRUE(test::refused([] { PolicyScope({.search = static_cast<Search>(9)}); }, "policy: search 9 "));
  EXPECT_TRUE(test::refused([] { PolicyScope({.math = static_cast<MathMode>(7)}); }, "math mode 7 is unknown"));
  EXPECT_EQ(detail::ctx.policy, Policy{});
}

TEST(Context, ThreadsBelongToSetThreadsAndNotToScopes) {
  EXPECT_EQ(threads(), omp_get_max_threads());
  std::thread([] {
    set_threads(2);
    {
      const PolicyScope three({.threads = 3});
      EXPECT_EQ(threads(), 2);
      set_threads(1);
    }
    EXPECT_EQ(threads(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
  }).join();
  EXPECT_TRUE(test::refused([] { set_threads(0); }, "set_threads: 0 threads were asked for"));
  EXPECT_EQ(threads(), omp_get_max_threads());
}

TEST(Context, SetThreadsHoldsForTheCallingThreadOnly) {
  std::thread([] {
    set_threads(1);
    EXPECT_EQ(threads(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
  }).join();
  EXPECT_EQ(detail::ctx.policy.threads, 0);
}

TEST(Device, HasAName) {
  EXPECT_EQ(to_string(Device{}), "cpu");
  EXPECT_EQ(to_string(Device{DeviceType::kCuda, 1}), "cuda:1");
  EXPECT_EQ(device_from_string("cpu"), Device{});
  EXPECT_TRUE(test::refused([] { device_from_string("gpu"); }, "\"gpu\" is unknown; use cpu"));
}

TEST(Device, IsRefusedWithoutKernels) {
  if (detail::has_cuda_kernels()) GTEST_SKIP() << "this library has CUDA kernels";
  EXPECT_TRUE(test::refused([] { device_from_string("cuda:0"); }, "\"cuda:0\": this build has no CUDA kernels"));
}

}  // namespace
}  // namespace plumb
