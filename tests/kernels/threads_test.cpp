#include "kernels/threads.h"

#include <gtest/gtest.h>

#include <omp.h>

#include <thread>

#include "dispatch/policy.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

TEST(Threads, BelongToSetThreadsAndNotToScopes) {
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
  EXPECT_EQ(detail::ctx.policy.threads, 0);
}

}  // namespace
}  // namespace plumb
