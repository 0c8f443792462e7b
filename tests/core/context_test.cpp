#include "core/context.h"
#include "core/runtime.h"

#include <gtest/gtest.h>

#include <thread>

#include "dispatch/policy.h"
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
