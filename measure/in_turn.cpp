#include "measure/in_turn.h"

#include <algorithm>
#include <utility>

#include "dispatch/timing.h"

namespace plumb::measure {
namespace {

InTurn once(const std::vector<std::function<double()>>& works, const InTurnLimits& limits) {
  std::vector<std::vector<double>> samples(works.size());
  InTurn all;
  double spent = 0;
  do {
    for (size_t i = 0; i < works.size(); ++i) {
      samples[i].push_back(works[i]());
      spent += samples[i].back();
    }
    ++all.rounds;
  } while (all.rounds < limits.least_rounds || (all.rounds < limits.most_rounds && spent < limits.seconds));
  for (std::vector<double>& s : samples) all.works.push_back(sampled(std::move(s)));
  return all;
}

// How many were disturbed, and how much the worst is spread.
std::pair<std::ptrdiff_t, double> unrest(const InTurn& t) {
  double worst = 0;
  for (const Sampled& s : t.works) worst = std::max(worst, s.spread());
  return {std::ranges::count_if(t.works, &Sampled::is_disturbed), worst};
}

}  // namespace

Sampled sampled(std::vector<double> samples) {
  constexpr double kFarApart = 0.2, kFarOff = 2;
  std::ranges::sort(samples);
  const auto at = [&](int number) { return detail::quartile_of(samples, number); };
  Sampled s{at(2), at(1), at(3)};
  s.is_disturbed =
      s.spread() > kFarApart || samples.back() > kFarOff * s.median || samples.front() * kFarOff < s.median;
  return s;
}

InTurn in_turn(const std::vector<std::function<double()>>& works, const InTurnLimits& limits) {
  InTurn best = once(works, limits);
  int repeats = 0;
  while (unrest(best).first > 0 && repeats < limits.most_repeats) {
    InTurn again = once(works, limits);
    ++repeats;
    if (unrest(again) < unrest(best)) best = std::move(again);
  }
  best.repeats = repeats;
  return best;
}

}  // namespace plumb::measure
