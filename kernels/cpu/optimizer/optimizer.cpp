#include "kernels/optimizer.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/parallel.h"

namespace plumb {
namespace {

// The parameters laid end to end, each starting at a multiple of kMultiple. Threads get equal numbers of elements,
// whatever tensors they belong to, and a tensor's vectors are the same for any number of threads.
struct Line {
  static constexpr int64_t kMultiple = 64;
  std::vector<int64_t> sizes, starts{0};

  explicit Line(std::span<const TensorSpec> weights) {
    for (const TensorSpec& w : weights) {
      sizes.push_back(w.numel());
      starts.push_back(starts.back() + cpu::ceil_div(w.numel(), kMultiple) * kMultiple);
    }
  }
  size_t tensor_at(int64_t position) const {
    return static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), position) - starts.begin() - 1);
  }
};

// G is the type of the gradients; if it differs from T, the weights have copies of that type.
template <class Rule, class T, class G>
[[gnu::noinline]] void update_range(const Rule& shared, T* w, G* copy, const G* g, std::array<T*, Rule::kStates> s,
                                    int64_t begin, int64_t end) {
  const Rule rule = shared;  // the stores below cannot alias a local copy, so its numbers stay in registers
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T weight = w[i];
    std::array<T, Rule::kStates> state;
    for (size_t k = 0; k < Rule::kStates; ++k) state[k] = s[k][i];
    rule(weight, static_cast<T>(g[i]), state.data());
    for (size_t k = 0; k < Rule::kStates; ++k) s[k][i] = state[k];
    w[i] = weight;
    if constexpr (!std::is_same_v<T, G>) copy[i] = G(weight);
  }
}

// G is the type of the copies, for those weights that have one.
template <class Rule, class T, class G, class Params>
void update_all(const Params& params, const UpdateLists& lists, const Line& line, const Launch& l) {
  auto* step = static_cast<int64_t*>(l.in[1]);
  const Rule rule(params, static_cast<double>(*static_cast<const T*>(l.in[0])), ++*step);
  constexpr int64_t kGrain = cpu::kGrainBytes / static_cast<int64_t>(sizeof(T) * (2 + Rule::kStates));
  cpu::parallel_for(line.starts.back(), kGrain, Line::kMultiple, [&](int64_t begin, int64_t end) {
    for (size_t i = line.tensor_at(begin); begin < end; begin = line.starts[++i]) {
      std::array<T*, Rule::kStates> states;
      for (size_t k = 0; k < Rule::kStates; ++k) states[k] = static_cast<T*>(l.in[lists.state(k, i)]);
      const auto update = [&]<class Gradient>(Gradient* copy) {
        update_range<Rule, T, Gradient>(rule, static_cast<T*>(l.in[lists.weight(i)]), copy,
                                        static_cast<const Gradient*>(l.in[lists.gradient(i)]), states,
                                        begin - line.starts[i], std::min(line.sizes[i], end - line.starts[i]));
      };
      lists.has_copy(i) ? update(static_cast<G*>(l.in[lists.copy(i)])) : update(static_cast<T*>(nullptr));
    }
  });
}

template <class T, class G, class Params>
void offer(const char* name, const Problem<Params>& p, Candidates& candidates) {
  void (*update)(const Params&, const UpdateLists&, const Line&, const Launch&) = nullptr;
  size_t states = 0;
  with_rule<T>(p.params, [&]<class Rule>() {
    update = &update_all<Rule, T, G, Params>;
    states = Rule::kStates;
  });
  const UpdateLists lists(p, states);
  candidates.add("fused", [=] {
    auto kernel = make_kernel(message("plumb:{}", name), [=, params = p.params, line = Line(lists.weights(p.in))](
                                                             const Launch& l) { update(params, lists, line, l); });
    kernel->info().bytes = lists.written_bytes(p.in);  // the gate adds what is read
    return kernel;
  });
}

template <class Params>
void offer(const char* name, const Problem<Params>& p, Candidates& candidates) {
  const DType of_weights = p.in[0].dtype;
  if (of_weights == DType::kF64) offer<double, double>(name, p, candidates);
  if (of_weights != DType::kF32) return;
  p.params.copies ? offer<float, Bfloat16>(name, p, candidates) : offer<float, float>(name, p, candidates);
}

}  // namespace

void SgdUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }
void AdamUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }
void RmsPropUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }

}  // namespace plumb
