// plumb info and plumb layout.
#include <map>
#include <set>

#include "tests/app/command.h"

namespace plumb::app {
namespace {

using InfoTest = test::CommandTest;
using LayoutCommandTest = test::CommandTest;

TEST_F(InfoTest, CountsTheParametersAsPublished) {
  const struct {
    const char *model, *text;
    int64_t parameters;
  } cases[] = {
      {"alexnet", "Total params: 78,330,250\n", 78'330'250}, {"vgg16", "Total params: 8,735,652\n", 8'735'652},
      {"vgg", "Total params: 8,735,652\n", 8'735'652},       {"lenet", "Total params: 61,706\n", 61'706},
      {"resnet20", "Total params: 269,722\n", 269'722},      {"resnet50", "Total params: 25,557,032\n", 25'557'032}};
  for (const auto& c : cases) {
    const test::Outcome o = run(std::string("info --json r.json --model ") + c.model);
    EXPECT_EQ(o.status, 0) << o;
    EXPECT_NE(o.out.find(c.text), o.out.npos) << o;
    const auto report = read_json("r.json");
    EXPECT_EQ(report["parameters"], c.parameters);
    int64_t sum = 0;
    for (const auto& layer : report["layers"]) sum += layer["parameters"].get<int64_t>();
    EXPECT_EQ(sum, c.parameters);
    EXPECT_EQ(report["layers"][0]["name"], "Conv2d-1");
  }
}

TEST_F(InfoTest, LayersAreOfNoDevice) {
  EXPECT_TRUE(refuses("info --model lenet --device cpu", "the same on every device; leave out --device"));
}

TEST_F(InfoTest, DescribesTheMachine) {
  const test::Outcome o = run("info --threads 1 --json r.json", {.variable = "OMP_WAIT_POLICY=PASSIVE"});

  ASSERT_EQ(o.status, 0) << o;
  for (const char* part : {"processor", "threads     1\n", "waiting     OMP_WAIT_POLICY=passive: threads sleep\n",
                           "library     oneDNN", "GFLOP/s f32", "GFLOP/s bf16", "GB/s"}) {
    EXPECT_NE(o.out.find(part), o.out.npos) << part << "\n" << o;
  }
  const auto report = read_json("r.json");
  EXPECT_EQ(report["threads"], 1);
  EXPECT_EQ(report["omp_wait_policy"], "PASSIVE");
  for (const char* roof :
       {"gflops", "fma_gflops", "matmul_gflops", "bf16_gflops", "matmul_bf16_gflops", "copy_gbytes_per_second"}) {
    EXPECT_GT(report["roofs"][roof], 0) << roof;
  }
}

// A value that is none leaves OpenMP's default.
TEST_F(InfoTest, SaysHowThreadsWaitByDefault) {
  const test::Outcome o = run("info --threads 1", {.variable = "OMP_WAIT_POLICY="});

  ASSERT_EQ(o.status, 0) << o;
  EXPECT_NE(o.out.find("waiting     active by default: threads spin for a while; "), o.out.npos) << o;
}

TEST_F(LayoutCommandTest, TimesEveryLayerInEveryDirectionAndLayout) {
  const auto report = report_of("layout lenet --batch 1 --algorithm heuristic");

  std::set<std::string> pieces;
  std::map<std::string, double> conversions_ms;
  for (const auto& row : report["rows"]) {
    EXPECT_GT(row["ms"], 0) << row;
    EXPECT_NE(row["implementation"], "") << row;
    const std::string name = row["layer"];
    const bool has_weight = name.starts_with("conv") || name.starts_with("fc");
    EXPECT_GT(row.value(has_weight ? "gflops_per_s" : "gbytes_per_s", 0.), 0) << row;
    EXPECT_FALSE(row.contains(has_weight ? "gbytes_per_s" : "gflops_per_s")) << row;
    EXPECT_EQ(row.value("onednn_best_ms", 0.) > 0, has_weight) << row;
    EXPECT_TRUE(row.value("conversions_ms", -1.) == 0 || row["conversions"] > 0) << row;
    conversions_ms[row["layout"]] += row.value(name == "permute" ? "ms" : "conversions_ms", 0.);
    pieces.insert(row["layer"].get<std::string>() + " " + row["direction"].get<std::string>() + " " +
                  row["layout"].get<std::string>());
  }
  for (const std::string layout : {"nchw", "nhwc", "chwn"}) {
    const auto& total = report["totals"][layout];
    EXPECT_GT(total["with_weights_ms"], 0);
    EXPECT_GT(total["onednn_best_ms"], 0);
    EXPECT_GT(total["ms"], total["with_weights_ms"]);
    EXPECT_NEAR(total["conversions_ms"].get<double>(), conversions_ms[layout], 1e-6);
    EXPECT_TRUE(layout != "nhwc" || total["conversions_ms"] > 0) << "linear layers take rows, as NCHW has them";
    for (const std::string layer : {"conv1", "conv2", "fc1", "fc2", "fc3"}) {
      for (const std::string direction : {"forward", "backward_weight", "backward_input"}) {
        const bool needed = layer != "conv1" || direction != "backward_input";
        EXPECT_EQ(pieces.contains(layer + " " + direction + " " + layout), needed) << layer << direction << layout;
      }
    }
  }
}

// The loss is computed in f32, and its gradient narrowed, by kernels of their own. (The weights have copies in bf16.)
TEST_F(LayoutCommandTest, CountsCastsAmongTheConversions) {
  const auto report = report_of("layout lenet --batch 1 --algorithm heuristic --dtype bf16");

  std::map<std::string, double> casts_ms, conversions_ms;
  for (const auto& row : report["rows"]) {
    const bool is_cast = row["layer"] == "cast", is_conversion = is_cast || row["layer"] == "permute";
    casts_ms[row["layout"]] += is_cast ? row["ms"].get<double>() : 0;
    conversions_ms[row["layout"]] += row[is_conversion ? "ms" : "conversions_ms"].get<double>();
  }
  for (const std::string layout : {"nchw", "nhwc", "chwn"}) {
    EXPECT_GT(casts_ms[layout], 0) << layout;
    EXPECT_NEAR(report["totals"][layout]["conversions_ms"].get<double>(), conversions_ms[layout], 1e-6) << layout;
  }
}

TEST_F(LayoutCommandTest, EveryWinogradRowHasItsErrorAgainstF64) {
  const auto report = report_of("layout resnet20 --batch 1 --algorithm winograd");

  int of_winograd = 0;
  for (const auto& row : report["rows"]) {
    const bool is_winograd = row["algorithm"].get<std::string>().starts_with("winograd");
    of_winograd += is_winograd;
    EXPECT_EQ(row.value("error_f64", 0.) > 0, is_winograd) << row;
    EXPECT_LT(row.value("error_f64", 0.), 1e-4) << row;
  }
  EXPECT_GT(of_winograd, 3 * 16) << "the 3x3 convolutions of stride 1 in NHWC, in three directions";
}

}  // namespace
}  // namespace plumb::app
