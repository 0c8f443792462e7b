#include "kernels/optimizer.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

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

template <class Rule, class T>
[[gnu::noinline]] void update_range(const Rule& shared, T* w, const T* g, const std::array<T*, Rule::kStates>& s,
                                    int64_t begin, int64_t end) {
  const Rule rule = shared;  // the stores below cannot alias a local copy, so its numbers stay in registers
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T weight = w[i];
    std::array<T, Rule::kStates> state;
    for (size_t k = 0; k < Rule::kStates; ++k) state[k] = s[k][i];
    rule(weight, g[i], state.data());
    for (size_t k = 0; k < Rule::kStates; ++k) s[k][i] = state[k];
    w[i] = weight;
  }
}

// The same for weights that have copies in bf16, as have their gradients: some at a time, which are widened before and
// narrowed behind, each by whole vectors.
template <class Rule>
void update_range(const Rule& rule, float* w, Bfloat16* copy, const Bfloat16* g,
                  const std::array<float*, Rule::kStates>& s, int64_t begin, int64_t end) {
  constexpr int64_t kSome = 512, kLanes = cpu::simd::kLanes;
  alignas(64) float wide[kSome];
  for (int64_t at = begin; at < end; at += kSome) {
    const int64_t n = std::min(kSome, end - at);
    for (int64_t i = 0; i < n; i += kLanes) cpu::simd::store(wide + i, cpu::simd::load(g + at + i, n - i));
    std::array<float*, Rule::kStates> states;
    for (size_t k = 0; k < Rule::kStates; ++k) states[k] = s[k] + at;
    update_range<Rule, float>(rule, w + at, wide, states, 0, n);
    for (int64_t i = 0; i < n; i += kLanes) cpu::simd::store(copy + at + i, cpu::simd::load(w + at + i, n - i), n - i);
  }
}

template <class Rule, class T, class Params>
void update_all(const Params& params, const UpdateLists& lists, const Line& line, const Launch& l) {
  auto* step = static_cast<int64_t*>(l.in[1]);
  const Rule rule(params, static_cast<double>(*static_cast<const T*>(l.in[0])), ++*step);
  constexpr int64_t kGrain = cpu::kGrainBytes / static_cast<int64_t>(sizeof(T) * (2 + Rule::kStates));
  cpu::parallel_for(line.starts.back(), kGrain, Line::kMultiple, [&](int64_t begin, int64_t end) {
    for (size_t i = line.tensor_at(begin); begin < end; begin = line.starts[++i]) {
      std::array<T*, Rule::kStates> states;
      for (size_t k = 0; k < Rule::kStates; ++k) states[k] = static_cast<T*>(l.in[lists.state(k, i)]);
      auto* w = static_cast<T*>(l.in[lists.weight(i)]);
      const void* g = l.in[lists.gradient(i)];
      const int64_t first = begin - line.starts[i], last = std::min(line.sizes[i], end - line.starts[i]);
      if constexpr (std::is_same_v<T, float>) {
        if (lists.has_copy(i)) {
          auto* copy = static_cast<Bfloat16*>(l.in[lists.copy(i)]);
          update_range(rule, w, copy, static_cast<const Bfloat16*>(g), states, first, last);
          continue;
        }
      }
      update_range(rule, w, static_cast<const T*>(g), states, first, last);
    }
  });
}

template <class T, class Params>
void offer(const char* name, const Problem<Params>& p, Candidates& candidates) {
  void (*update)(const Params&, const UpdateLists&, const Line&, const Launch&) = nullptr;
  size_t states = 0;
  with_rule<T>(p.params, [&]<class Rule>() {
    update = &update_all<Rule, T, Params>;
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
  if (of_weights == DType::kF64) offer<double>(name, p, candidates);
  if (of_weights == DType::kF32) offer<float>(name, p, candidates);
}

}  // namespace

void SgdUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }
void AdamUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }
void RmsPropUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }

}  // namespace plumb
