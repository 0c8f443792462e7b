#include "dispatch/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "core/error.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

void sleep_ms(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

TEST(TimingTest, TheHostIsTimedRunByRunAfterTheWarmUp) {
  int runs = 0;
  const auto work = [&](Runtime::Stream stream) {
    EXPECT_EQ(stream, nullptr);
    ++runs;
    sleep_ms(1);
  };
  detail::Timed timed(Device(), work, {.warm_up = 3});
  EXPECT_EQ(runs, 3);
  EXPECT_GE(timed.seconds(), 1e-3);
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(timed.times(), 1);
}

TEST(TimingTest, EndsWithTheFirstLimitOfWhichBothNumbersAreReached) {
  int runs = 0;
  const auto runs_until = [&](detail::Until until) {
    runs = 0;
    const auto work = [&](Runtime::Stream) { ++runs, sleep_ms(2); };
    detail::least_seconds(Device(), work, until, {.warm_up = 0});
    return runs;
  };
  EXPECT_EQ(runs_until({{5}}), 5);
  EXPECT_EQ(runs_until({{0}}), 1);
  EXPECT_EQ(runs_until({{1000}, {3, 1e-9}}), 3);
  EXPECT_LE(runs_until({{1000}, {1, 5e-3}}), 3);
}

TEST(TimingTest, TheSpreadIsOfAllRuns) {
  double ms[] = {3, 5, 1, 4, 2};
  size_t next = 0;
  detail::Timed work(Device(), [&](Runtime::Stream) { sleep_ms(ms[next++]); }, {.warm_up = 0});

  const detail::Spread s = detail::spread_of(work, {{5}});

  EXPECT_GE(s.least, 1e-3);
  EXPECT_GE(s.lower_quartile, 2e-3);
  EXPECT_GE(s.median, 3e-3);
  EXPECT_GE(s.upper_quartile, 4e-3);
  EXPECT_LT(s.least, s.upper_quartile);
}

TEST(TimingTest, TheFastestIsFoundAndWhatIsFarBehindIsLeftOutOfTheTurns) {
  int slow_runs = 0;
  const detail::Run slow = [&](Runtime::Stream) { ++slow_runs, sleep_ms(10); }, fast = [](Runtime::Stream) {};

  const detail::Fastest found = detail::fastest_of(Device(), {slow, fast, slow});

  EXPECT_EQ(found.index, 1u);
  EXPECT_LT(found.seconds, 10e-3);
  EXPECT_LE(slow_runs, 4) << "two runs of 10 ms each are enough";
}

TEST(TimingTest, WhatIsPlainlyTooSlowHasTwoRuns) {
  using Found = std::tuple<size_t, int, int>;
  const auto found = [] {
    int runs_of_slow = 0, runs_of_near = 0;
    const detail::Run fast = [](Runtime::Stream) { sleep_ms(1); };
    const detail::Run slow = [&](Runtime::Stream) { ++runs_of_slow, sleep_ms(5); };
    const detail::Run near = [&](Runtime::Stream) { ++runs_of_near, sleep_ms(2.5); };
    const size_t fastest = detail::fastest_of(Device(), {fast, slow, near}).index;
    return Found(fastest, runs_of_slow, runs_of_near);
  };
  const Found expected(0, 2, 5);
  Found last = found();
  for (int again = 0; again < 10 && last != expected; ++again) last = found();  // a busy machine sleeps longer
  EXPECT_EQ(last, expected);
}

TEST(TimingTest, ErrorsOnTheHostStayErrors) {
  const detail::Run works = [](Runtime::Stream) {}, fails = [](Runtime::Stream) { fail("this way is none"); };
  EXPECT_TRUE(test::refused([&] { detail::fastest_of(Device(), {works, fails}); }, "this way is none"));
}

}  // namespace
}  // namespace plumb
