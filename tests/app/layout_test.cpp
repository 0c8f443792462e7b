// plumb layout: what it says of its own times.
#include "app/layout_report.h"

#include <nlohmann/json.hpp>

#include "tests/app/command.h"

namespace plumb::app {
namespace {

using LayoutCommandTest = test::CommandTest;

TEST(LayoutReportTest, ShortTimesAreMicroseconds) {
  const std::map<double, std::string> texts{{0, "0"},
                                            {3.4e-7, "0.34 us"},
                                            {3.46e-6, "3.46 us"},
                                            {45.67e-6, "45.7 us"},
                                            {999.4e-6, "999 us"},
                                            {999.6e-6, "1.00 ms"},
                                            {12.34e-3, "12.3 ms"},
                                            {2.461, "2461 ms"}};
  for (const auto& [seconds, text] : texts) EXPECT_EQ(duration(seconds), text);
}

TEST(LayoutReportTest, TheVerdictNamesTheFastestAndWhatTheOthersTake) {
  const LayoutVerdict v = verdict_of(
      {{.layout = Layout::kNchw, .seconds = 0.012, .lower_quartile = 0.0119, .upper_quartile = 0.0121, .rows = 4},
       {.layout = Layout::kNhwc, .seconds = 0.010, .lower_quartile = 0.0099, .upper_quartile = 0.0101, .rows = 4}});
  EXPECT_EQ(v.fastest, Layout::kNhwc);
  EXPECT_TRUE(v.is_clear);
  EXPECT_EQ(v.text, "nhwc is the fastest, 10.0 ms a step; nchw takes 1.20 times as long");
}

TEST(LayoutReportTest, TheVerdictSaysWhatTheSpreadLeavesOpenAndWhatWasDisturbed) {
  const LayoutVerdict v = verdict_of(
      {{.layout = Layout::kNchw,
        .seconds = 0.011,
        .lower_quartile = 0.009,
        .upper_quartile = 0.013,
        .rows = 4,
        .disturbed = 1,
        .repeated = 2},
       {.layout = Layout::kNhwc, .seconds = 0.010, .lower_quartile = 0.0099, .upper_quartile = 0.0101, .rows = 4}});
  EXPECT_FALSE(v.is_clear);
  EXPECT_EQ(v.text,
            "nhwc is the fastest, 10.0 ms a step; nchw takes 1.10 times as long; within the spread, nchw may be as "
            "fast; 2 of 8 rows "
            "were measured again; 1 of 8 rows stayed disturbed, and the verdict rests on them too");
}

TEST_F(LayoutCommandTest, TheVerdictStandsAboveTheRowsAndInTheFile) {
  const test::Outcome o = run("layout lenet --batch 1 --algorithm heuristic --json r.json");

  ASSERT_EQ(o.status, 0) << o;
  const auto report = read_json("r.json");
  const std::string text = report["verdict"]["text"];
  EXPECT_TRUE(text.starts_with(report["verdict"]["fastest"].get<std::string>() + " is the fastest")) << text;
  EXPECT_LT(o.out.find(text), o.out.find("conv1 ")) << o;
  EXPECT_EQ(o.out.find(" 0.000 "), o.out.npos) << o;
  double fastest = 0, disturbed = 0, total = 0;
  for (const auto& row : report["rows"]) {
    EXPECT_LE(row["lower_quartile_ms"], row["ms"]) << row;
    EXPECT_GE(row["upper_quartile_ms"], row["ms"]) << row;
    EXPECT_GE(row["rounds"], 7) << row;
    EXPECT_TRUE(!row["disturbed"] || row["measured_again"] == 2) << row;
    if (row["layout"] == report["verdict"]["fastest"]) fastest += row["ms"].get<double>();
    disturbed += row["disturbed"].get<bool>();
  }
  for (const auto& [layout, t] : report["totals"].items()) {
    EXPECT_GE(t["ms"].get<double>() * (1 + 1e-9), fastest) << layout;
    total += t["disturbed_rows"].get<int>();
  }
  EXPECT_EQ(total, disturbed);
}

}  // namespace
}  // namespace plumb::app
