#include "dispatch/policy.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"

namespace plumb {
namespace {

TEST(Policy, AlgorithmsHaveOneNumberEach) {
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
  EXPECT_TRUE(test::refused([] { algorithm_id("wino"); }, "algorithm \"wino\" is unknown")) << "no family's name";
}

TEST(Policy, WhatMeansNothingIsRefused) {
  EXPECT_TRUE(test::refused([] { PolicyScope({.algorithm = 65535}); }, "algorithm number 65535 is unknown"));
  EXPECT_TRUE(test::refused([] { PolicyScope({.search = static_cast<Search>(9)}); }, "policy: search 9, "));
  EXPECT_TRUE(test::refused([] { PolicyScope({.kernels = static_cast<KernelSet>(5)}); }, "set of kernels 5 or math"));
  EXPECT_TRUE(test::refused([] { PolicyScope({.math = static_cast<MathMode>(7)}); }, "math mode 7 is unknown"));
  EXPECT_EQ(detail::ctx.policy, Policy{});
}

}  // namespace
}  // namespace plumb
