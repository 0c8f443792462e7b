// What `plumb layout` says of its measurements: the verdict, totals and rows, as JSON and as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/layout_rows.h"

namespace plumb::app {

/// Seconds for people, in microseconds below one millisecond, with three digits: "3.46 us", "12.3 ms"; "0" for none.
std::string duration(double seconds);

/// One row as JSON.
nlohmann::ordered_json row_json(const measure::LayoutRow& row);

/// A whole step in one layout: sums over its rows, of medians and of quartiles.
struct LayoutTotal {
  Layout layout;
  double seconds = 0, lower_quartile = 0, upper_quartile = 0;
  double conversions = 0;
  double with_weights = 0, best = 0;  ///< of the rows that oneDNN's own formats are known for; 0 without any
  int rows = 0, disturbed = 0, repeated = 0;
};
std::vector<LayoutTotal> totals_of(const std::vector<measure::LayoutRow>& rows);
nlohmann::ordered_json totals_json(const std::vector<LayoutTotal>& totals);

/// Which layout is the fastest, and what the others take; where the quartiles of two overlap, that they cannot be told
/// apart; and how many rows were disturbed.
struct LayoutVerdict {
  Layout fastest;
  bool is_clear;
  std::string text;
};
LayoutVerdict verdict_of(const std::vector<LayoutTotal>& totals);

void print_totals(const std::vector<LayoutTotal>& totals);
void print_rows(const std::vector<measure::LayoutRow>& rows);

}  // namespace plumb::app
