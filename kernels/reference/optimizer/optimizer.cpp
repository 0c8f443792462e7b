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
  const UpdateLists lists(p, states);
  std::vector<reference::Elements> weights, gradients;
  for (size_t t = 0; t < lists.n; ++t) {
    weights.emplace_back(p.in[lists.weight(t)]);
    gradients.emplace_back(p.in[lists.gradient(t)]);
  }
  reference::offer(kind, candidates, [=, params = p.params](const Launch& l) {
    const int64_t step = ++*static_cast<int64_t*>(l.in[1]);
    for (size_t t = 0; t < lists.n; ++t) {
      const reference::Elements &weight = weights[t], &gradient = gradients[t];
      reference::parallel_for_each_index(weight.shape(), [&](const reference::Index& i) {
        double w = weight.load(l.in[lists.weight(t)], i), s[kMostStates];
        for (size_t k = 0; k < states; ++k) s[k] = weight.load(l.in[lists.state(k, t)], i);
        update(params, rate.load(l.in[0], {}), step, w, gradient.load(l.in[lists.gradient(t)], i), s);
        for (size_t k = 0; k < states; ++k) weight.store(l.in[lists.state(k, t)], i, s[k]);
        weight.store(l.in[lists.weight(t)], i, w);
        if (lists.has_copy(t)) gradient.store(l.in[lists.copy(t)], i, weight.load(l.in[lists.weight(t)], i));
      });
    }
  });
}

}  // namespace

void SgdUpdate::reference(const Problem<Params>& p, Candidates& c) { offer_update(kName, p, c); }
void AdamUpdate::reference(const Problem<Params>& p, Candidates& c) { offer_update(kName, p, c); }
void RmsPropUpdate::reference(const Problem<Params>& p, Candidates& c) { offer_update(kName, p, c); }

}  // namespace plumb
