#include "graph/program/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plumb::detail {
namespace {

size_t most_alive(const std::vector<Lifetime>& values) {
  size_t most = 0;
  for (const Lifetime& at : values) {
    size_t alive = 0;
    for (const Lifetime& v : values) alive += v.first <= at.first && at.first <= v.last ? v.bytes : 0;
    most = std::max(most, alive);
  }
  return most;
}

void expect_apart(const std::vector<Lifetime>& values, size_t total) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Lifetime& a = values[i];
    ASSERT_LE(a.offset + a.bytes, total);
    for (size_t j = 0; j < i; ++j) {
      const Lifetime& b = values[j];
      const bool meet_in_time = a.first <= b.last && b.first <= a.last;
      const bool meet_in_place = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      ASSERT_FALSE(meet_in_time && meet_in_place) << i << " " << j;
    }
  }
}

TEST(MemoryPlan, ValuesThatAreAliveTogetherAreApart) {
  std::mt19937 random(1);
  for (const int count : {0, 1, 2, 40, 500, 3000}) {  // 3000: in the order of time alone
    std::vector<Lifetime> values;
    for (int i = 0; i < count; ++i) {
      const int first = static_cast<int>(random() % 1000);
      values.push_back({256 * (random() % 64), first, first + static_cast<int>(random() % 30)});
    }
    const size_t total = plan_memory(values);
    ASSERT_NO_FATAL_FAILURE(expect_apart(values, total)) << count;
    EXPECT_GE(total, most_alive(values));
    EXPECT_LE(total, most_alive(values) * 3 / 2) << count;
  }
}

TEST(MemoryPlan, StacksTakeNoMoreThanIsAlive) {  // forward and backward
  std::vector<Lifetime> values;
  for (int i = 0; i < 4000; ++i) values.push_back({256 * static_cast<size_t>(1 + i % 7), i, 7999 - i});
  EXPECT_EQ(plan_memory(values), most_alive(values));
}

TEST(MemoryPlan, ValuesThatFollowEachOtherShareMemory) {
  std::vector<Lifetime> values{{1024, 0, 1}, {1024, 2, 3}, {512, 2, 2}, {512, 4, 5}};
  EXPECT_EQ(plan_memory(values), 1536u);
}

}  // namespace
}  // namespace plumb::detail
