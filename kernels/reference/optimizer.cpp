#include "kernels/optimizer.h"

#include "kernels/reference/elements.h"

namespace plumb {
namespace {

// One step for one element, by a rule in double that is made anew each time.
template <class Params>
using Step = void (*)(const Params&, double rate, int64_t step, double& w, double g, double* states);

template <class Rule, class Params>
void step_by(const Params& params, double rate, int64_t step, double& w, double g, double* states) {
  Rule(params, rate, step)(w, g, states);
}

template <class Params>
void offer_update(const char* kind, const Problem<Params>& p, Candidates& candidates) {
  constexpr size_t kMostStates = 3;
  if (p.in[0].dtype != DType::kF32 && p.in[0].dtype != DType::kF64) return;
  Step<Params> update = nullptr;
  size_t states = 0;
  with_rule<double>(p.params, [&]<class Rule>() {
    static_assert(Rule::kStates <= kMostStates);
    update = &step_by<Rule, Params>;
    states = Rule::kStates;
  });
  const reference::Elements rate(p.in[0]);
  std::vector<reference::Elements> weights;
  const size_t n = (p.in.size() - 2) / (2 + states);
  for (const TensorSpec& w : p.in.subspan(2, n)) weights.emplace_back(w);
  reference::offer(kind, candidates, [=, params = p.params](const Launch& l) {
    const int64_t step = ++*static_cast<int64_t*>(l.in[1]);
    for (size_t t = 0; t < n; ++t) {
      const auto data = [&](size_t list) { return l.in[2 + list * n + t]; };  // weights, states, gradients
      reference::parallel_for_each_index(weights[t].shape(), [&](const reference::Index& i) {
        double w = weights[t].load(data(0), i), s[kMostStates];
        for (size_t k = 0; k < states; ++k) s[k] = weights[t].load(data(1 + k), i);
        update(params, rate.load(l.in[0], {}), step, w, weights[t].load(data(1 + states), i), s);
        for (size_t k = 0; k < states; ++k) weights[t].store(data(1 + k), i, s[k]);
        weights[t].store(data(0), i, w);
      });
    }
  });
}

}  // namespace

void SgdUpdate::reference(const Problem<Params>& p, Candidates& c) { offer_update(kName, p, c); }
void AdamUpdate::reference(const Problem<Params>& p, Candidates& c) { offer_update(kName, p, c); }
void RmsPropUpdate::reference(const Problem<Params>& p, Candidates& c) { offer_update(kName, p, c); }

}  // namespace plumb
