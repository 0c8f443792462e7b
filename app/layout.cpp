// plumb layout: every layer of a network in every direction and layout, beside oneDNN with all formats left to it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "dispatch/policy.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "measure/layout_pieces.h"
#include "ops/random.h"
#include "train/training_step.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

struct LayoutConfig {
  std::string model, json;
  KernelChoice kernels;
  training::Precision precision = training::Precision::kF32;
  Device device;
  int64_t batch = 250;
};

Program training_step(const models::Network& network, Layout layout, const LayoutConfig& c) {
  const Shape& in = network.input();
  const TensorSpec spec(Shape{c.batch, in[0], in[1], in[2]}, activations_of(c.precision), layout);
  const Tensor images = uniform(spec, 0, 1, 1);
  const Tensor labels =
      uniform(TensorSpec(Shape{c.batch}, DType::kI64), 0, static_cast<double>(network.classes() - 1), 2);
  Generator generator(0);
  return capture(
      [&] { return training::forward_backward(network, models::ForwardContext::training(generator), images, labels); });
}

Json row_of(const measure::Piece& piece, Layout layout, const measure::Timing& t, double best) {
  const KernelInfo& info = piece.kernel->kernel->info();
  Json j{{"layer", piece.layer},
         {"direction", piece.direction},
         {"layout", to_string(layout)},
         {"implementation", info.name},
         {"algorithm", info.algorithm},
         {"ms", t.seconds * 1e3},
         {"provider", to_string(info.provider)}};
  if (info.flops > 0) {
    j["gflops_per_s"] = info.flops / t.seconds / 1e9;
  } else {
    j["gbytes_per_s"] = info.bytes / t.seconds / 1e9;
  }
  j["conversions"] = info.conversions + static_cast<int>(info.packs.size());
  j["conversions_ms"] = t.conversions * 1e3;
  if (best > 0) j["onednn_best_ms"] = best * 1e3;
  if (t.error) j["error_f64"] = *t.error;  // a NaN is null in the file
  return j;
}

void print_header(const LayoutConfig& c) {
  fmt::print("{}, {}\n", whose(c.kernels), where(c.device));
  fmt::print("{:<22} {:<16} {:<5} {:>10} {:>16} {:>10} {:>10}  {}\n", "layer", "direction", "", "ms", "rate",
             "convert ms", "oneDNN ms", "algorithm implementation");
}

void print(const Json& r) {
  const bool counts_flops = r.contains("gflops_per_s");
  const double rate = counts_flops ? r["gflops_per_s"].get<double>() : r["gbytes_per_s"].get<double>();
  const std::string best =
      r.contains("onednn_best_ms") ? fmt::format("{:.3f}", r["onednn_best_ms"].get<double>()) : "-";
  const std::string error =
      r.contains("error_f64") ? fmt::format(", error {:.1e}", shown(r["error_f64"].get<double>())) : "";
  fmt::print("{:<22} {:<16} {:<5} {:>10.3f} {:>8.1f} {} {:>10.3f} {:>10}  {} {}\n", r["layer"].get<std::string>(),
             r["direction"].get<std::string>(), r["layout"].get<std::string>(), r["ms"].get<double>(), rate,
             counts_flops ? "GFLOP/s" : "GB/s   ", r["conversions_ms"].get<double>(), best,
             r["algorithm"].get<std::string>(), r["implementation"].get<std::string>() + error);
}

void print_totals(const Json& totals) {
  std::string fastest;
  for (const auto& [layout, t] : totals.items()) {
    if (fastest.empty() || t["ms"] < totals[fastest]["ms"]) fastest = layout;
  }
  fmt::print("{:<17} {:>10} {:>15} {:>23} {:>24}\n", "forward, backward", "ms a step", "conversions ms",
             "layers with weights ms", "oneDNN's own formats ms");
  for (const auto& [layout, t] : totals.items()) {
    const auto beside = [&](const char* key) {
      return t.contains(key) ? fmt::format("{:.1f}", t[key].get<double>()) : "-";
    };
    fmt::print("{:<17} {:>10.1f} {:>15.1f} {:>23} {:>24}{}\n", layout, t["ms"].get<double>(),
               t["conversions_ms"].get<double>(), beside("with_weights_ms"), beside("onednn_best_ms"),
               layout == fastest ? "  fastest" : "");
  }
}

void layout(const LayoutConfig& c) {
  check_outputs({{"--json", c.json}});
  check_device(c.device, c.kernels, c.precision);
  const PolicyScope policy(policy_of(c.kernels, c.precision));
  const DeviceScope on(c.device);
  const auto network = models::make_network(c.model);
  Json report{{"model", network->name()},
              {"batch", c.batch},
              {"dtype", to_string(c.precision)},
              {"algorithm", to_string(c.kernels)},
              {"kernels", to_string(c.kernels.set)},
              {"environment", environment_json(network->device())}};
  report["rows"] = Json::array();
  measure::OnednnBest best;
  for (const Layout l : kPublicLayouts) {
    const Program program = training_step(*network, l, c);
    check_engine(c.kernels, c.model);
    if (report["rows"].empty()) print_header(c);  // now that a batch fits into memory
    double total = 0, conversions = 0, weights = 0, weights_best = 0;
    for (const measure::Piece& piece : measure::pieces_of(program, *network)) {
      const measure::Timing t = time_of(piece);
      const double floor = best.seconds(piece);
      const bool is_conversion = piece.layer == "permute" || piece.layer == "cast";
      total += t.seconds;
      conversions += is_conversion ? t.seconds : t.conversions;
      if (floor > 0) weights += t.seconds, weights_best += floor;
      report["rows"].push_back(row_of(piece, l, t, floor));
      print(report["rows"].back());
    }
    const std::string name = to_string(l);
    Json& totals = report["totals"][name] = {{"ms", total * 1e3}, {"conversions_ms", conversions * 1e3}};
    if (weights_best > 0) {  // there is no oneDNN on another device
      totals["with_weights_ms"] = weights * 1e3;
      totals["onednn_best_ms"] = weights_best * 1e3;
    }
    fmt::print("\n");
  }
  print_totals(report["totals"]);
  if (!c.json.empty()) write_json(c.json, report);
}

}  // namespace

void add_layout(const CommandLine& plumb) {
  const CommandLine cmd =
      plumb.subcommand("layout", "Time every layer, direction and layout of a network, conversions included");
  auto c = std::make_shared<LayoutConfig>();
  add_model_option(cmd, c->model);
  add_batch_option(cmd, c->batch, "Images at once");
  add_dtype_option(cmd, c->precision);
  add_device_option(cmd, c->device, "Where to run");
  add_kernel_options(cmd, c->kernels);
  add_workspace_option(cmd);
  add_threads_option(cmd);
  cmd.add("--json", c->json, {"Write the same to this file"});
  cmd.calls([c] { layout(*c); });
}

}  // namespace plumb::app
