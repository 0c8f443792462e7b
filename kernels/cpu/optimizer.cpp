#include "kernels/optimizer.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/parallel.h"

namespace plumb {
namespace {

// The parameters laid end to end, each from a multiple of kMultiple on: pieces for threads are cut by elements,
// wherever a tensor ends, and the vectors of a tensor are the same for any number of threads.
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
[[gnu::noinline]] void update_range(const Rule& shared, T* w, const T* g, std::array<T*, Rule::kStates> s,
                                    int64_t begin, int64_t end) {
  const Rule rule = shared;  // a copy that the stores below cannot change, so that its numbers stay in registers
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

template <class Rule, class T, class Params>
void update_all(const Params& params, const Line& line, const Launch& l) {
  auto* step = static_cast<int64_t*>(l.in[1]);
  const Rule rule(params, static_cast<double>(*static_cast<const T*>(l.in[0])), ++*step);
  constexpr int64_t kGrain = cpu::kGrainBytes / static_cast<int64_t>(sizeof(T) * (2 + Rule::kStates));
  cpu::parallel_for(line.starts.back(), kGrain, Line::kMultiple, [&](int64_t begin, int64_t end) {
    const size_t n = line.sizes.size();
    for (size_t i = line.tensor_at(begin); begin < end; begin = line.starts[++i]) {
      const auto data = [&](size_t list) { return static_cast<T*>(l.in[2 + list * n + i]); };
      std::array<T*, Rule::kStates> states;
      for (size_t k = 0; k < Rule::kStates; ++k) states[k] = data(1 + k);
      update_range<Rule, T>(rule, data(0), data(1 + Rule::kStates), states, begin - line.starts[i],
                            std::min(line.sizes[i], end - line.starts[i]));
    }
  });
}

template <class Params>
class UpdateKernel final : public Kernel {
 public:
  using Update = void (*)(const Params&, const Line&, const Launch&);
  UpdateKernel(const char* name, const Problem<Params>& p, size_t states, Update update)
      : Kernel(message("plumb:{}", name)),
        params_(p.params),
        line_(p.in.subspan(2, (p.in.size() - 2) / (2 + states))),
        update_(update) {
    for (const TensorSpec& s : p.in.subspan(1, 1 + line_.sizes.size() * (1 + states))) {
      info().bytes += static_cast<double>(s.bytes());  // of what is written; the gate adds what is read
    }
  }
  void run(const Launch& l) const override { update_(params_, line_, l); }

 private:
  Params params_;
  Line line_;
  Update update_;
};

template <class T, class Params>
void offer(const char* name, const Problem<Params>& p, Candidates& candidates) {
  typename UpdateKernel<Params>::Update update = nullptr;
  size_t states = 0;
  with_rule<T>(p.params, [&]<class Rule>() {
    update = &update_all<Rule, T, Params>;
    states = Rule::kStates;
  });
  candidates.add("fused", [=] { return std::make_unique<UpdateKernel<Params>>(name, p, states, update); });
}

template <class Params>
void offer(const char* name, const Problem<Params>& p, Candidates& candidates) {
  if (p.in[0].dtype == DType::kF32) offer<float>(name, p, candidates);
  if (p.in[0].dtype == DType::kF64) offer<double>(name, p, candidates);
}

}  // namespace

void SgdUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }
void AdamUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }
void RmsPropUpdate::cpu(const Problem<Params>& p, Candidates& c) { offer(kName, p, c); }

}  // namespace plumb
