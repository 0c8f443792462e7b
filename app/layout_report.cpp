#include "app/layout_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/spec.h"
#include "measure/command/report.h"

namespace plumb::app {

using Json = nlohmann::ordered_json;
using measure::LayoutRow;

std::string duration(double seconds) {
  if (seconds == 0) return "0";
  const bool is_long = seconds >= 0.9995e-3;
  const double value = seconds * (is_long ? 1e3 : 1e6);
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, is_long ? "ms" : "us");
}

Json row_json(const LayoutRow& r) {
  const KernelInfo& info = r.piece.kernel->kernel->info();
  Json j{{"layer", r.piece.layer},
         {"direction", r.piece.direction},
         {"layout", to_string(r.layout)},
         {"implementation", info.name},
         {"algorithm", info.algorithm},
         {"ms", r.run.median * 1e3},
         {"lower_quartile_ms", r.run.lower_quartile * 1e3},
         {"upper_quartile_ms", r.run.upper_quartile * 1e3},
         {"rounds", r.rounds},
         {"measured_again", r.repeats},
         {"disturbed", r.is_disturbed()},
         {"provider", to_string(info.provider)}};
  if (info.flops > 0) {
    j["gflops_per_s"] = info.flops / r.run.median / 1e9;
  } else {
    j["gbytes_per_s"] = info.bytes / r.run.median / 1e9;
  }
  j["conversions"] = info.conversions + static_cast<int>(info.packs.size());
  j["conversions_ms"] = r.conversions.median * 1e3;
  if (r.best) j["onednn_best_ms"] = *r.best * 1e3;
  if (r.error) j["error_f64"] = *r.error;  // a NaN is null in the file
  return j;
}

std::vector<LayoutTotal> totals_of(const std::vector<LayoutRow>& rows) {
  std::vector<LayoutTotal> totals;
  for (const LayoutRow& r : rows) {
    if (totals.empty() || totals.back().layout != r.layout) totals.push_back({.layout = r.layout});
    LayoutTotal& t = totals.back();
    const bool is_conversion = r.piece.layer == "permute" || r.piece.layer == "cast";
    t.seconds += r.run.median;
    t.lower_quartile += r.run.lower_quartile;
    t.upper_quartile += r.run.upper_quartile;
    t.conversions += is_conversion ? r.run.median : r.conversions.median;
    if (r.best) t.with_weights += r.run.median, t.best += *r.best;
    ++t.rows;
    t.disturbed += r.is_disturbed();
    t.repeated += r.repeats > 0;
  }
  return totals;
}

Json totals_json(const std::vector<LayoutTotal>& totals) {
  Json all = Json::object();
  for (const LayoutTotal& t : totals) {
    Json& j = all[to_string(t.layout)] = {{"ms", t.seconds * 1e3},
                                          {"lower_quartile_ms", t.lower_quartile * 1e3},
                                          {"upper_quartile_ms", t.upper_quartile * 1e3},
                                          {"conversions_ms", t.conversions * 1e3}};
    if (t.best > 0) {  // there is no oneDNN on another device
      j["with_weights_ms"] = t.with_weights * 1e3;
      j["onednn_best_ms"] = t.best * 1e3;
    }
    j["rows"] = t.rows, j["disturbed_rows"] = t.disturbed;
  }
  return all;
}

LayoutVerdict verdict_of(const std::vector<LayoutTotal>& totals) {
  const LayoutTotal& fastest = *std::ranges::min_element(totals, {}, &LayoutTotal::seconds);
  std::string others, near;
  int rows = 0, disturbed = 0, repeated = 0;
  for (const LayoutTotal& t : totals) {
    rows += t.rows, disturbed += t.disturbed, repeated += t.repeated;
    if (t.layout == fastest.layout) continue;
    others += fmt::format("{}{} takes {:.2f} times as long", others.empty() ? "" : ", ", to_string(t.layout),
                          t.seconds / fastest.seconds);
    if (t.lower_quartile <= fastest.upper_quartile)
      near += fmt::format("{}{}", near.empty() ? "" : " and ", to_string(t.layout));
  }
  LayoutVerdict v{fastest.layout, near.empty(), {}};
  v.text = fmt::format("{} is the fastest, {} a step; {}", to_string(v.fastest), duration(fastest.seconds), others);
  if (!v.is_clear) v.text += fmt::format("; within the spread, {} may be as fast", near);
  if (repeated) v.text += fmt::format("; {} of {} rows were measured again", repeated, rows);
  if (disturbed)
    v.text += fmt::format("; {} of {} rows stayed disturbed, and the verdict rests on them too", disturbed, rows);
  return v;
}

void print_totals(const std::vector<LayoutTotal>& totals) {
  fmt::print("{:<17} {:>10} {:>21} {:>12} {:>20} {:>21}\n", "forward, backward", "a step", "quartiles", "conversions",
             "layers with weights", "oneDNN's own formats");
  for (const LayoutTotal& t : totals) {
    const auto beside = [&](double seconds) { return t.best > 0 ? duration(seconds) : "-"; };
    fmt::print("{:<17} {:>10} {:>21} {:>12} {:>20} {:>21}\n", to_string(t.layout), duration(t.seconds),
               duration(t.lower_quartile) + " - " + duration(t.upper_quartile), duration(t.conversions),
               beside(t.with_weights), beside(t.best));
  }
}

void print_rows(const std::vector<LayoutRow>& rows) {
  const Layout* last = nullptr;
  for (const LayoutRow& r : rows) {
    if (!last || *last != r.layout) {
      fmt::print("\n{:<22} {:<16} {:<5} {:>9} {:>7} {:>16} {:>9} {:>9}  {}\n", "layer", "direction", "", "median",
                 "spread", "rate", "convert", "oneDNN", "algorithm implementation");
    }
    last = &r.layout;
    const KernelInfo& info = r.piece.kernel->kernel->info();
    const std::string rate = info.flops > 0 ? fmt::format("{:.1f} GFLOP/s", info.flops / r.run.median / 1e9)
                                            : fmt::format("{:.1f} GB/s   ", info.bytes / r.run.median / 1e9);
    const bool is_other = r.is_disturbed() || r.repeats > 0;
    const std::string state = !is_other          ? ""
                              : r.is_disturbed() ? fmt::format(", disturbed in {} tries", r.repeats + 1)
                                                 : fmt::format(", measured {} times", r.repeats + 1);
    fmt::print("{:<22} {:<16} {:<5} {:>9} {:>7} {:>16} {:>9} {:>9}  {} {}{}{}\n", r.piece.layer, r.piece.direction,
               to_string(r.layout), duration(r.run.median), fmt::format("{:.0f} %", 100 * r.run.spread()), rate,
               r.conversions.median > 0 ? duration(r.conversions.median) : "-", r.best ? duration(*r.best) : "-",
               info.algorithm, info.name, r.error ? fmt::format(", error {:.1e}", command::shown(*r.error)) : "",
               state);
  }
}

}  // namespace plumb::app
