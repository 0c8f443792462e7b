#include "measure/command/values.h"
#include "dispatch/policy.h"

#include <gtest/gtest.h>

#include "core/convention.h"
#include "core/layout.h"

namespace plumb::command {
namespace {

TEST(Values, AnAlgorithmIsAWayToChooseOrOneToInsistOn) {
  const std::pair<const char*, Search> ways[] = {
      {"heuristic", Search::kHeuristic}, {"measured", Search::kMeasured}, {"deterministic", Search::kDeterministic}};
  for (const auto& [name, search] : ways) {
    EXPECT_EQ(policy_of(kernel_choice(name)).algorithm, 0u) << name;
    EXPECT_EQ(policy_of(kernel_choice(name)).search, search);
  }
  for (const std::string name : {"direct", "winograd"}) {
    EXPECT_EQ(policy_of(kernel_choice(name)).algorithm, algorithm_id(name)) << name;
    EXPECT_EQ(policy_of(kernel_choice(name)).search, Search::kMeasured) << name << " is measured among its kind";
  }
}

TEST(Values, AnAlgorithmIsCalledAsItWasNamed) {
  for (const std::string& name : algorithm_names()) EXPECT_EQ(to_string(kernel_choice(name)), name);
  for (const std::string printed :
       {"cudnn_e38_1", "cudnn_e5_krsc", "cudnn_e13_2_b_krsc_c8", "cudnn_e0_fallback_krsc", "cublaslt_a0_t0_s0_k0",
        "cublaslt_a0_t0_s0_k0_then_bias_then_mask", "cublaslt_then_mask"}) {
    EXPECT_EQ(to_string(kernel_choice(printed)), printed) << "as plumb plan prints it";
  }
  EXPECT_EQ(to_string(KernelChoice{}), "measured");
}

TEST(Values, NamesAreThoseThatArePrinted) {
  EXPECT_EQ(named("chwn", kPublicLayouts), Layout::kChwn);
  EXPECT_EQ(named("tf32", training::kPrecisions), training::Precision::kTf32);
  EXPECT_EQ(any_of(names_of(kConventions)), "pytorch, keras or tensorflow1");
}

}  // namespace
}  // namespace plumb::command
