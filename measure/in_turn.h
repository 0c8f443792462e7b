// Times several pieces of work in turn, and again if something else on the machine disturbed them.
#pragma once

#include <functional>
#include <vector>

namespace plumb::measure {

/// The distribution of a piece of work's samples.
struct Sampled {
  double median = 0, lower_quartile = 0, upper_quartile = 0;
  bool is_disturbed = false;  ///< the quartiles are far apart, or a single sample is far off

  /// The distance of the quartiles, as a share of the median.
  double spread() const { return median > 0 ? (upper_quartile - lower_quartile) / median : 0; }
};
/// Quartiles more than a fifth of the median apart, or a sample of more than twice the median or less than half of it,
/// are a disturbance.
Sampled sampled(std::vector<double> samples);

struct InTurn {
  std::vector<Sampled> works;  ///< in the order in which they were given
  int rounds = 0;              ///< how often each had its turn
  int repeats = 0;             ///< how often all was measured again
};
struct InTurnLimits {
  int least_rounds = 7, most_rounds = 21;
  double seconds = 0.3;  ///< beyond the least rounds
  int most_repeats = 2;
};
/// Each function measures its work once and returns the seconds. A round is each of them once. While one of them was
/// disturbed, all are measured again; what is returned is the calmest of these times.
InTurn in_turn(const std::vector<std::function<double()>>& works, const InTurnLimits& limits = {});

}  // namespace plumb::measure
