// Work on a device is timed by replays.
#include "dispatch/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/compare.h"

namespace plumb {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

TEST(TimingOfDevices, AReplayIsLongBesideTheClockAndOfAllBuffers) {
  int launches = 0;
  detail::Timed work(kDevice, [&](Runtime::Stream) { ++launches; }, {.turns = 600});
  EXPECT_GE(work.times(), 600);
  const int captured = launches;
  EXPECT_GE(captured, 600);
  work.seconds();
  EXPECT_EQ(launches, captured) << "a replay launches nothing by itself";
}

TEST(TimingOfDevices, WhatCannotBeCapturedIsLaunchedAsOften) {
  int launches = 0;
  detail::Timed work(kDevice, [&](Runtime::Stream) { ++launches; }, {.turns = 3, .can_be_captured = false});
  const int before = launches;
  work.seconds();
  EXPECT_EQ(launches - before, work.times());
}

TEST(TimingOfDevices, WhatIsPlainlySlowerIsRunTwiceAndNotCaptured) {
  int slow_runs = 0;
  const detail::Run slow =
                        [&](Runtime::Stream) {
                          ++slow_runs, std::this_thread::sleep_for(std::chrono::milliseconds(10));
                        },
                    fast = [](Runtime::Stream) {};
  EXPECT_EQ(detail::fastest_of(kDevice, {slow, fast, slow}).index, 1u);
  EXPECT_EQ(slow_runs, 4);
}

TEST(TimingOfDevices, AWayThatThrowsIsPassedOverUnlessAllDo) {
  const detail::Run works = [](Runtime::Stream) {}, fails = [](Runtime::Stream) { fail("this way is none"); };
  EXPECT_EQ(detail::fastest_of(kDevice, {fails, works}).index, 1u);
  int runs = 0;
  const detail::Run fails_once = [&](Runtime::Stream) {
    if (++runs == 1) fail("this way is none, today");
  };
  EXPECT_TRUE(test::refused([&] { detail::fastest_of(kDevice, {fails_once, fails}); }, "this way is none"));
  EXPECT_EQ(runs, 1) << "what has failed is not run again";
}

}  // namespace
}  // namespace plumb
