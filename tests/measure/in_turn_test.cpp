#include "measure/in_turn.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace plumb::measure {
namespace {

constexpr InTurnLimits kFive{.least_rounds = 5, .most_rounds = 5, .seconds = 1, .most_repeats = 2};

// Takes one second, but at the turns that are named, as long as that.
std::function<double()> clock(std::map<int, double> turns, std::string* order = nullptr, char name = '-') {
  return [=, turn = 0]() mutable {
    if (order) *order += name;
    const auto it = turns.find(turn++);
    return it == turns.end() ? 1.0 : it->second;
  };
}

TEST(InTurnTest, EachHasItsTurnInEveryRound) {
  std::string order;
  const InTurn t = in_turn({clock({}, &order, 'a'), clock({}, &order, 'b'), clock({}, &order, 'c')}, kFive);

  EXPECT_EQ(order, "abcabcabcabcabc");
  EXPECT_EQ(t.rounds, 5);
  EXPECT_EQ(t.repeats, 0);
  for (const Sampled& s : t.works) {
    EXPECT_EQ(s.median, 1);
    EXPECT_EQ(s.spread(), 0);
    EXPECT_FALSE(s.is_disturbed);
  }
}

TEST(InTurnTest, AMedianAndItsQuartiles) {
  const Sampled s = sampled({1.08, 1, 1.04, 0.96, 1.02});
  EXPECT_EQ(s.median, 1.02);
  EXPECT_EQ(s.lower_quartile, 1);
  EXPECT_EQ(s.upper_quartile, 1.04);
  EXPECT_FALSE(s.is_disturbed);
  EXPECT_TRUE(sampled({1, 1, 1, 1, 2.1}).is_disturbed) << "a single one far off";
  EXPECT_TRUE(sampled({1, 1, 1, 1, 0.4}).is_disturbed);
  EXPECT_TRUE(sampled({1, 1.25, 1, 1.25, 1.1}).is_disturbed) << "quartiles far apart";
  // Slow ones count as fast ones do, whatever the number of rounds.
  const Sampled slow = sampled({1, 1, 1, 1, 1, 1.5, 1.5}), fast = sampled({1, 1, 1, 1, 1, 0.5, 0.5});
  EXPECT_EQ(slow.upper_quartile, 1.25);
  EXPECT_EQ(fast.lower_quartile, 0.75);
  EXPECT_TRUE(slow.is_disturbed && fast.is_disturbed);
  EXPECT_EQ(sampled({1, 2}).median, 1.5);
}

TEST(InTurnTest, WhatWasDisturbedIsMeasuredAgain) {
  const InTurn t = in_turn({clock({}), clock({{2, 30}})}, kFive);
  EXPECT_EQ(t.repeats, 1);
  EXPECT_FALSE(t.works[1].is_disturbed);
}

TEST(InTurnTest, ThereIsALimitAndTheCalmestIsKept) {
  const InTurn t = in_turn({clock({{0, 30}, {1, 30}, {5, 2.5}, {10, 30}, {11, 40}, {12, 50}})}, kFive);
  EXPECT_EQ(t.repeats, 2);
  EXPECT_TRUE(t.works[0].is_disturbed);
  EXPECT_EQ(t.works[0].median, 1);
  EXPECT_EQ(t.works[0].spread(), 0) << "the second time only one was off";
}

TEST(InTurnTest, LongWorkHasFewRounds) {
  EXPECT_EQ(in_turn({clock({})}, {.least_rounds = 3, .most_rounds = 20, .seconds = 0.5}).rounds, 3);
  EXPECT_EQ(in_turn({clock({})}, {.least_rounds = 3, .most_rounds = 20, .seconds = 100}).rounds, 20);
}

}  // namespace
}  // namespace plumb::measure
