// Inside a parallel region of OpenMP, where a kernel made for several threads would do the share of one, or wait for
// others that never come.
#include <gtest/gtest.h>
#include <omp.h>

#include "core/context.h"
#include "dispatch/kernel_cache.h"
#include "graph/program.h"
#include "kernels/threads.h"
#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/random.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

// oneDNN spreads the gradient of few channels' weights over threads that add up parts.
Tensor gradient_of_weights() {
  const Tensor x = uniform({8, 3, 14, 14}, -1, 1, 1), w = uniform({16, 3, 3, 3}, -1, 1, 2).require_grad();
  return grad(conv2d(x, w, {}, {.padding = 1}), {w}, uniform({8, 16, 14, 14}, -1, 1, 3))[0];
}

TEST(ParallelRegion, IsNoPlaceForSeveralThreadsOfAKernel) {
  const detail::Scoped<Policy> as_before(detail::ctx.policy, detail::ctx.policy);
  set_threads(2);
  const Tensor x = ones({4});
  Program doubles = capture([&] { return x * 2; });
  std::string of_op[2], of_program[2];
#pragma omp parallel num_threads(2)
  {
    const int t = omp_get_thread_num();
    of_op[t] = test::error_of([&] { x + x; });
    if (t == 0) of_program[0] = test::error_of([&] { doubles.run(); });
  }
  const std::string advice =
      ": inside a parallel region of OpenMP no kernel can start its 2 threads; call set_threads(1) there first, or "
      "start threads in another way";
  for (const std::string& said : of_op) EXPECT_EQ(said, "add" + advice);
  EXPECT_EQ(of_program[0], "run" + advice);
  doubles.run();
  EXPECT_EQ(doubles.outputs()[0].at({3}), 2);
}

TEST(ParallelRegion, AProgramOfSeveralThreadsIsRefusedWhateverIsSetThere) {
  const detail::Scoped<Policy> as_before(detail::ctx.policy, detail::ctx.policy);
  set_threads(2);
  const Tensor x = ones({4});
  Program doubles = capture([&] { return x * 2; });
  std::string said;
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    const detail::Scoped<Policy> outside(detail::ctx.policy, detail::ctx.policy);
    set_threads(1);
    said = test::error_of([&] { doubles.run(); });
  }
  EXPECT_TRUE(said.starts_with("run: inside a parallel region of OpenMP no kernel can start its 2 threads"));
}

// OpenMP's own number may be another inside, as by OMP_NUM_THREADS=2,1: not that of the kernels that were made outside.
TEST(ParallelRegion, WhereOpenMPHasOneThreadKernelsAreMadeForOne) {
  const detail::Scoped<Policy> as_before(detail::ctx.policy, detail::ctx.policy);
  set_threads(2);
  detail::ctx.policy.threads = 0;  // as where nobody says so
  const Tensor expected = gradient_of_weights();
  Tensor inside[2];
#pragma omp parallel num_threads(2)
  {
    omp_set_num_threads(1);
    inside[omp_get_thread_num()] = gradient_of_weights();
  }
  for (const Tensor& dw : inside) EXPECT_TRUE(test::close(dw, expected, 1e-5));
  const int64_t before = cache_stats().prepared;
  set_threads(2);
  gradient_of_weights();
  EXPECT_EQ(cache_stats().prepared, before) << "said or not, two are two";
}

TEST(ParallelRegion, WithOneThreadKernelsComputeTheSame) {
  const detail::Scoped<Policy> as_before(detail::ctx.policy, detail::ctx.policy);
  set_threads(2);
  const Tensor expected = gradient_of_weights();
  Tensor inside[2];
#pragma omp parallel num_threads(2)
  {
    const detail::Scoped<Policy> outside(detail::ctx.policy, detail::ctx.policy);
    set_threads(1);
    inside[omp_get_thread_num()] = gradient_of_weights();
  }
  for (const Tensor& dw : inside) EXPECT_TRUE(test::close(dw, expected, 1e-5));
}

}  // namespace
}  // namespace plumb
