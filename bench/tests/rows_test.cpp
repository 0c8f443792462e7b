#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "bench/allocations.h"
#include "bench/reporter.h"
#include "bench/row.h"
#include "tests/support/json.h"

namespace plumb::bench {
namespace {

// Google Benchmark's flags and both registries are the program's: rows are added and run in one place.
test::Json run_rows(const std::string& filter) {
  benchmark::ClearRegisteredBenchmarks();
  register_rows(filter);
  std::ostringstream text;
  benchmark::JSONReporter json;
  RoofReporter reporter(&json, true);
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  benchmark::RunSpecifiedBenchmarks(&reporter, nullptr, "all");
  return test::parse_json(text.str());
}

Work sleeping(double flops, size_t bytes) {
  Work w;
  w.label = "fake plumb:sleep";
  w.flops = flops;
  w.read_bytes = bytes;
  w.conversions = 2;
  w.run = [](Runtime::Stream) {
    void* volatile block = std::malloc(8);
    std::free(block);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  };
  return w;
}

TEST(RowsTest, CarryWhatTheyMeasuredAndAreJudgedByTheRoof) {
  char program[] = "test", time[] = "--benchmark_min_time=0.001";
  char* words[] = {program, time, nullptr};
  int count = 2;
  benchmark::Initialize(&count, words);
  const int64_t before = allocation_count();
  void* volatile block = std::malloc(8);
  std::free(block);
  const double an_allocation = static_cast<double>(allocation_count() - before);  // not counted under sanitizers

  add_row("good/arithmetic", [] { return sleeping(1e6, 0); });
  add_row("good/memory", [] { return sleeping(0, 1 << 16); });
  add_row("good/declined", [] { return Work{}; });
  add_row("bad/fails", []() -> Work { fail("this row cannot be prepared"); });
  add_row("bad/too_fast", [] { return sleeping(1e15, 0); });

  const test::Json good = run_rows("^good/");
  ASSERT_EQ(good["benchmarks"].size(), 2u);
  EXPECT_GT(std::stod(good["context"]["copy_gbytes"].get<std::string>()), 0);
  for (const auto& row : good["benchmarks"]) {
    EXPECT_EQ(row["label"], "fake plumb:sleep");
    EXPECT_EQ(row["conversions"], 2);
    EXPECT_EQ(row["allocations"], an_allocation);
    EXPECT_GE(row["min_us"], 200);
    EXPECT_GE(row["real_time"], row["min_us"]);
    EXPECT_GT(row["roof_share"], 0);
    EXPECT_LT(row["roof_share"], 1);
  }
  const double us = good["benchmarks"][0]["real_time"];
  EXPECT_NEAR(good["benchmarks"][0]["GFLOP/s"].get<double>(), 1e6 / us / 1e3, 0.3 * 1e6 / us / 1e3);
  EXPECT_GT(good["benchmarks"][1]["GB/s"], 0);
  EXPECT_TRUE(declined("good/declined"));
  EXPECT_EQ(judge(), 0);

  run_rows("^bad/too_fast");
  testing::internal::CaptureStderr();
  EXPECT_EQ(judge(), 3);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("bad/too_fast: "), std::string::npos);

  const test::Json failed = run_rows("^bad/fails");
  EXPECT_EQ(failed["benchmarks"][0]["error_message"], "this row cannot be prepared");
  EXPECT_EQ(row_counts().failed, 1);
  EXPECT_EQ(judge(), 1);
}

}  // namespace
}  // namespace plumb::bench
