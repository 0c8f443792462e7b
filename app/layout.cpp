// plumb layout: every layer of a network in every direction and layout, beside oneDNN with all formats left to it.
#include <fmt/core.h>

#include <cstring>
#include <map>

#include "app/command.h"
#include "app/conv2d_error.h"
#include "app/options.h"
#include "app/raw_onednn.h"
#include "app/report.h"
#include "app/trainer.h"
#include "core/random.h"
#include "core/stopwatch.h"
#include "kernels/trial.h"
#include "ops/convert.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

struct LayoutConfig {
  std::string model, json, algorithm = "measured", dtype = "f32";
  int64_t batch = 250;
};

// A piece of work in a training step. Layers with weights have their parameter's name, others that of the kernel.
struct Piece {
  std::string layer;
  const Prepared* kernel;
  std::string direction;  // "forward", "backward_input", ...
};

struct Timing {
  double seconds = 0;      // of a run, packing of weights included
  double conversions = 0;  // seconds of these for packing and for conversions inside the kernel
  double error = -1;       // of a Winograd kernel, against f64
};

// The work of a step.

bool has_weight(std::string_view kernel) { return kernel.starts_with("conv2d_") || kernel.starts_with("linear_"); }

std::string direction_of(std::string_view kernel) {
  for (const std::string_view d : {"backward_input", "backward_weight", "backward", "forward"}) {
    if (kernel.ends_with(d)) return std::string(d);
  }
  return "";
}

std::vector<std::string> layers_with_weights(const models::Network& network) {
  std::vector<std::string> names;
  for (const auto& p : network.parameters()) {
    if (p.tensor.rank() > 1) names.push_back(p.name.substr(0, p.name.rfind('.')));
  }
  return names;
}

// Backward meets the layers in the reverse of the order in which forward did.
std::vector<Piece> pieces_of(const Program& program, const models::Network& network) {
  const std::vector<std::string> names = layers_with_weights(network);
  std::map<std::string, size_t> met;
  std::vector<Piece> pieces;
  for (const Prepared* p : program.kernels()) {
    const std::string kernel = p->kind->name, direction = direction_of(kernel);
    if (kernel == "repack") continue;  // timed with the kernel that wants the pack
    if (!has_weight(kernel)) {
      pieces.push_back({kernel, p, direction});
      continue;
    }
    const bool is_both = direction == "backward";  // the two products of a gradient in one kernel
    const size_t i = met[is_both ? "backward_weight" : direction]++;
    if (is_both) ++met["backward_input"];
    PLUMB_CHECK(i < names.size(), "layout: {} has more kernels with weights than layers", network.name());
    pieces.push_back({direction == "forward" ? names[i] : names[names.size() - 1 - i], p, direction});
  }
  return pieces;
}

Program training_step(const models::Network& network, Layout layout, const LayoutConfig& c) {
  const Shape& in = network.input();
  const TensorSpec spec(Shape{c.batch, in[0], in[1], in[2]}, dtype_from_string(c.dtype), layout);
  const Tensor images = uniform(spec, 0, 1, 1);
  const Tensor labels =
      uniform(TensorSpec(Shape{c.batch}, DType::kI64), 0, static_cast<double>(network.classes() - 1), 2);
  Generator generator(0);
  return capture([&] { return forward_backward(network, models::Pass::training(generator), images, labels); });
}

template <class F>
double best_of(F&& seconds) {
  seconds();
  double best = 1e30, spent = 0;
  for (int i = 0; i < 20 && (i < 3 || spent < 0.3); ++i) {
    const double s = seconds();
    spent += s;
    best = std::min(best, s);
  }
  return best;
}

Direction raw_direction(const std::string& direction) {
  for (const Direction d : kDirections) {
    if (direction == to_string(d)) return d;
  }
  fail("layout: direction {} is unknown", direction);
}

RawConv2d raw_conv2d(const Prepared& p, const std::string& direction) {
  const auto in = p.in(), out = p.out();
  Conv2dParams params;
  std::memcpy(static_cast<void*>(&params), p.params.data(), sizeof params);
  params.activation = Activation::kNone;
  switch (const Direction d = raw_direction(direction)) {
    case Direction::kForward: return {d, in[0], in[1], out[0], params};
    case Direction::kBackwardInput: return {d, out[0], in[1], in[0], params};
    case Direction::kBackwardWeight: return {d, in[1], out[0], in[0], params};
  }
  return {};
}

RawLinear raw_linear(const Prepared& p, const std::string& direction) {
  const auto in = p.in(), out = p.out();
  switch (const Direction d = raw_direction(direction)) {
    case Direction::kForward: return {d, in[0], in[1], out[0]};
    case Direction::kBackwardInput: return {d, out[0], in[1], in[0]};
    case Direction::kBackwardWeight: return {d, in[1], out[0], in[0]};
  }
  return {};
}

// Casts of all operands to f32 and back, as a kernel makes them that computes bf16 as f32.
double casts(const Prepared& p) {
  const NoGrad no_grad;
  double seconds = 0;
  for (const TensorSpec& s : p.specs) {
    const Tensor narrow = uniform(s, -1, 1, 1), wide = to(narrow, DType::kF32);
    const bool is_input = &s < p.specs.data() + p.in().size();
    seconds += best_of([&] { return seconds_of([&] { is_input ? to(narrow, DType::kF32) : to(wide, s.dtype); }); });
  }
  return seconds;
}

// Between the layout of the activations that a thin product writes or reads besides x, and rows of pixels.
double rows_of_pixels(const Prepared& p) {
  const NoGrad no_grad;
  const bool is_forward = p.kind == &plumb::detail::kind_of<Conv2dForward>;
  const TensorSpec& s = is_forward ? p.out()[0] : p.in()[0];
  const Tensor given = uniform(is_forward ? s.with(Layout::kNhwc) : s, -1, 1, 1);
  const Layout wanted = is_forward ? s.layout : Layout::kNhwc;
  return best_of([&] { return seconds_of([&] { to(given, wanted); }); });
}

// Conversions inside a kernel are casts, or oneDNN's, and timed on the same work written against it alone.
double inner_conversions(const Piece& piece) {
  const KernelInfo& info = piece.kernel->kernel->info();
  if (info.algorithm.starts_with("as_f32")) return casts(*piece.kernel);
  if (info.algorithm == "thin") return rows_of_pixels(*piece.kernel);
  const auto raw = std::string_view(piece.kernel->kind->name).starts_with("conv2d")
                       ? raw_same(raw_conv2d(*piece.kernel, piece.direction), info.algorithm)
                       : raw_same(raw_linear(*piece.kernel, piece.direction), info.algorithm);
  if (!raw) return 0;
  raw->run();
  return best_of([&] { return raw->conversion_seconds(); });
}

Timing time(const Piece& piece) {
  const Prepared& p = *piece.kernel;
  Scratch scratch(p.in(), p.out());
  const Trial trial(scratch, p.in(), *p.kernel);
  Timing t;
  t.seconds = best_of([&] { return trial(); });
  if (p.kernel->info().algorithm.find("winograd") != std::string::npos) {
    t.error = conv2d_error(p, scratch.in(), scratch.out()[0]);
  }
  if (p.kernel->info().conversions) {
    t.conversions = inner_conversions(piece);
  } else if (!p.kernel->info().packs.empty()) {
    t.conversions = best_of([&] { return seconds_of([&] { trial.pack(); }); });
  }
  return t;
}

// What oneDNN takes with every format left to it; nothing for kernels without weights.
class Best {
 public:
  double seconds(const Piece& piece) {
    if (!has_weight(piece.kernel->kind->name)) return 0;
    const std::string key = piece.layer + " " + piece.direction;
    const auto it = known_.find(key);
    if (it != known_.end()) return it->second;
    const Prepared& p = *piece.kernel;
    if (std::string_view(p.kind->name).starts_with("conv2d")) {
      known_[key] = seconds_of_best(raw_conv2d(p, piece.direction));
    } else if (piece.direction != "backward") {
      known_[key] = seconds_of_best(raw_linear(p, piece.direction));
    } else {
      for (const Direction d : {Direction::kBackwardInput, Direction::kBackwardWeight}) {
        known_[key] += seconds_of_best(RawLinear{d, p.in()[1], p.in()[2], p.in()[0]});
      }
    }
    return known_[key];
  }

 private:
  template <class Raw>
  static double seconds_of_best(const Raw& work) {
    const auto raw = raw_best(work);
    return raw ? best_of([&] { return seconds_of([&] { raw->run(); }); }) : 0;
  }
  std::map<std::string, double> known_;  // the same in all layouts
};

Json row_of(const Piece& piece, Layout layout, const Timing& t, double best) {
  const KernelInfo& info = piece.kernel->kernel->info();
  Json j{{"layer", piece.layer},        {"direction", piece.direction}, {"layout", to_string(layout)},
         {"implementation", info.name}, {"algorithm", info.algorithm},  {"ms", t.seconds * 1e3}};
  if (info.flops > 0) {
    j["gflops_per_s"] = info.flops / t.seconds / 1e9;
  } else {
    j["gbytes_per_s"] = info.bytes / t.seconds / 1e9;
  }
  j["conversions"] = info.conversions + static_cast<int>(info.packs.size());
  j["conversions_ms"] = t.conversions * 1e3;
  if (best > 0) j["onednn_best_ms"] = best * 1e3;
  if (t.error >= 0) j["error_f64"] = t.error;
  return j;
}

void print_header() {
  fmt::print("{:<22} {:<16} {:<5} {:>10} {:>16} {:>10} {:>10}  {}\n", "layer", "direction", "", "ms", "rate",
             "convert ms", "oneDNN ms", "algorithm implementation");
}

void print(const Json& r) {
  const bool counts_flops = r.contains("gflops_per_s");
  const double rate = counts_flops ? r["gflops_per_s"].get<double>() : r["gbytes_per_s"].get<double>();
  const std::string best =
      r.contains("onednn_best_ms") ? fmt::format("{:.3f}", r["onednn_best_ms"].get<double>()) : "-";
  const std::string error = r.contains("error_f64") ? fmt::format(", error {:.1e}", r["error_f64"].get<double>()) : "";
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
    fmt::print("{:<17} {:>10.1f} {:>15.1f} {:>23.1f} {:>24.1f}{}\n", layout, t["ms"].get<double>(),
               t["conversions_ms"].get<double>(), t["with_weights_ms"].get<double>(), t["onednn_best_ms"].get<double>(),
               layout == fastest ? "  fastest" : "");
  }
}

void layout(const LayoutConfig& c) {
  check_outputs({{"--json", c.json}});
  const ChoiceScope choice(choice_of(c.algorithm));
  const auto network = models::make_network(c.model);
  Json report{{"model", network->name()}, {"batch", c.batch}, {"dtype", c.dtype}, {"environment", environment_json()}};
  report["rows"] = Json::array();
  Best best;
  for (const Layout l : kPublicLayouts) {
    const Program program = training_step(*network, l, c);
    if (report["rows"].empty()) print_header();  // now that a batch fits into memory
    double total = 0, conversions = 0, weights = 0, weights_best = 0;
    for (const Piece& piece : pieces_of(program, *network)) {
      const Timing t = time(piece);
      const double floor = best.seconds(piece);
      const bool is_conversion = piece.layer == "permute" || piece.layer == "cast";
      total += t.seconds;
      conversions += is_conversion ? t.seconds : t.conversions;
      if (floor > 0) weights += t.seconds, weights_best += floor;
      report["rows"].push_back(row_of(piece, l, t, floor));
      print(report["rows"].back());
    }
    const std::string name = to_string(l);
    report["totals"][name] = {{"ms", total * 1e3},
                              {"conversions_ms", conversions * 1e3},
                              {"with_weights_ms", weights * 1e3},
                              {"onednn_best_ms", weights_best * 1e3}};
    fmt::print("\n");
  }
  print_totals(report["totals"]);
  if (!c.json.empty()) write_text(c.json, report.dump(1) + "\n");
}

}  // namespace

void add_layout(CLI::App& app) {
  auto* cmd = app.add_subcommand("layout", "Time every layer, direction and layout of a network, conversions included");
  auto c = std::make_shared<LayoutConfig>();
  add_model_option(*cmd, c->model);
  add_batch_option(*cmd, c->batch, "Images at once");
  add_dtype_option(*cmd, c->dtype);
  add_algorithm_option(*cmd, c->algorithm);
  add_threads_option(*cmd);
  cmd->add_option("--json", c->json, "Write the same to this file");
  cmd->callback([c] { layout(*c); });
}

}  // namespace plumb::app
