#include "app/values.h"
#include "dispatch/policy.h"

#include <gtest/gtest.h>

namespace plumb::app {
namespace {

TEST(Values, AnAlgorithmIsAWayToChooseOrOneToInsistOn) {
  for (const std::string name : {"heuristic", "measured", "deterministic"}) {
    EXPECT_EQ(choice_of(name).algorithm, 0u) << name;
  }
  EXPECT_EQ(choice_of("heuristic").search, Search::kHeuristic);
  EXPECT_EQ(choice_of("measured").search, Search::kMeasured);
  EXPECT_EQ(choice_of("deterministic").search, Search::kDeterministic);
  for (const std::string name : {"direct", "winograd"}) {
    EXPECT_EQ(choice_of(name).algorithm, algorithm_id(name)) << name;
    EXPECT_EQ(choice_of(name).search, Search::kMeasured) << name << " is measured among its kind";
  }
}

}  // namespace
}  // namespace plumb::app
