// One launch for all parameters: blocks walk the parameters laid end to end in pieces. The pointers travel as the
// kernel's argument, which from CUDA 12.1 on holds up to 32 KB: more parameters than that are several launches.
#include "kernels/optimizer.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

using functors::Told;

constexpr unsigned kThreads = 256;
constexpr int64_t kPiece = 8192;  // elements of one parameter that a block takes at a time

// G: of the copies, and of the gradients of those weights that have one; the other gradients are of type T.
template <class T, class G, size_t kStates>
struct Parameter {
  T* w;
  G* copy;  // null if there is none
  const void* g;
  T* s[kStates > 0 ? kStates : 1];
  int64_t n, first_piece;
};
template <class T, class G, size_t kStates>
inline constexpr size_t kMost = (32764 - 256) / sizeof(Parameter<T, G, kStates>);  // of one launch

template <class Rule, class T, class G, class Params>
struct UpdateArgs {
  Params params;
  Told is;
  const T* rate;
  const int64_t* step;
  int64_t pieces;
  int count;
  Parameter<T, G, Rule::kStates> of[kMost<T, G, Rule::kStates>];
};
template <class Rule>
struct UpdateShared {
  alignas(Rule) unsigned char rule[sizeof(Rule)];
};

template <class Rule, class T, class G, class Params>
__global__ void __launch_bounds__(kThreads) update_kernel(const UpdateArgs<Rule, T, G, Params> a) {
  constexpr size_t kStates = Rule::kStates, kRoom = kStates > 0 ? kStates : 1;
  constexpr bool kCopies = !std::is_same_v<T, G>;
  // As many of a narrower G. Twice as many would be two accesses to each half of what memory moves at a time: an H200
  // took twice as long.
  constexpr int kTogether = cuda::Vector<T>::kSize;
  auto& s = cuda::shared<UpdateShared<Rule>>();
  auto* const made = reinterpret_cast<Rule*>(s.rule);
  if (threadIdx.x == 0) *made = Rule(a.params, static_cast<double>(*a.rate), *a.step + 1, a.is);  // powers take long
  __syncthreads();
  const Rule rule = *made;
#pragma unroll 1
  for (int64_t piece = blockIdx.x; piece < a.pieces; piece += gridDim.x) {
    int low = 0, high = a.count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (a.of[middle].first_piece <= piece) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const auto& p = a.of[low];
    const int64_t begin = (piece - p.first_piece) * kPiece, end = begin + kPiece < p.n ? begin + kPiece : p.n;
    const int64_t whole = begin + (end - begin) / kTogether * kTogether;
    const auto update = [&]<int kEach, class Gradient>(const Gradient* gradient, int64_t i) {
      auto w = cuda::load_piece<kEach>(p.w + i);
      const auto g = cuda::load_piece<kEach>(gradient + i);
      cuda::Piece<T, kEach> state[kRoom];
      for (size_t k = 0; k < kStates; ++k) state[k] = cuda::load_piece<kEach>(p.s[k] + i);
      for (int j = 0; j < kEach; ++j) {
        T one[kRoom];
        for (size_t k = 0; k < kStates; ++k) one[k] = state[k].of[j];
        rule(w.of[j], cuda::wide(g.of[j]), one);
        for (size_t k = 0; k < kStates; ++k) state[k].of[j] = one[k];
      }
      for (size_t k = 0; k < kStates; ++k) cuda::store_piece(p.s[k] + i, state[k]);
      cuda::store_piece(p.w + i, w);
      if constexpr (!std::is_same_v<T, Gradient>) {
        cuda::Piece<G, kEach> copy;
        for (int j = 0; j < kEach; ++j) copy.of[j] = cuda::rounded<G>(w.of[j]);
        cuda::store_piece(p.copy + i, copy);
      }
    };
    const auto update_piece = [&]<class Gradient>(const Gradient* gradient) {
#pragma unroll 1
      for (int64_t i = begin + threadIdx.x * kTogether; i < whole; i += kThreads * kTogether)
        update.template operator()<kTogether>(gradient, i);
      if (const int64_t i = whole + threadIdx.x; i < end) update.template operator()<1>(gradient, i);
    };
    if (kCopies && p.copy) {
      update_piece(static_cast<const G*>(p.g));
    } else {
      update_piece(static_cast<const T*>(p.g));
    }
  }
}

struct StepArgs {
  int64_t* step;
};
__global__ void count_step_kernel(const StepArgs a) { ++*a.step; }

template <class T, class G, class Params>
void offer(const char* name, const Problem<Params>& p, Candidates& candidates) {
  with_told_rule<T>(p.params, [&]<class Rule>(const Told& is) {
    using Args = UpdateArgs<Rule, T, G, Params>;
    constexpr size_t kStates = Rule::kStates, kOfLaunch = kMost<T, G, kStates>;
    const UpdateLists lists(p, kStates);
    std::vector<int64_t> sizes;
    for (const TensorSpec& w : lists.weights(p.in)) sizes.push_back(w.numel());
    const double written = lists.written_bytes(p.in);
    candidates.add("fused", [=, params = p.params, device = p.device] {
      const int launches = static_cast<int>((lists.n + kOfLaunch - 1) / kOfLaunch) + 1;
      auto kernel = cuda::own(name, device, launches, [=](const cuda::Queue& q, const Launch& l) {
        Args a;
        a.params = params;
        a.is = is;
        a.rate = static_cast<const T*>(l.in[0]);
        a.step = static_cast<const int64_t*>(l.in[1]);
        for (size_t first = 0; first < lists.n; first += kOfLaunch) {
          a.count = static_cast<int>(std::min(lists.n - first, kOfLaunch));
          a.pieces = 0;
          for (int i = 0; i < a.count; ++i) {
            const size_t at = first + static_cast<size_t>(i);
            auto& one = a.of[i];
            one.w = static_cast<T*>(l.in[lists.weight(at)]);
            one.copy = lists.has_copy(at) ? static_cast<G*>(l.in[lists.copy(at)]) : nullptr;
            for (size_t k = 0; k < kStates; ++k) one.s[k] = static_cast<T*>(l.in[lists.state(k, at)]);
            one.g = l.in[lists.gradient(at)];
            one.n = sizes[at];
            one.first_piece = a.pieces;
            a.pieces += (sizes[at] + kPiece - 1) / kPiece;
          }
          q.launch<update_kernel<Rule, T, G, Params>>(cuda::grid_of(q.runtime(), a.pieces, kThreads), a);
        }
        q.launch<count_step_kernel>(cuda::Grid{{1}, {1}}, StepArgs{static_cast<int64_t*>(l.in[1])});
      });
      kernel->info().bytes += written;  // the gate adds what is read
      return kernel;
    });
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

void SgdUpdate::cuda(const Problem<Params>& p, Candidates& c) { offer("plumb:sgd", p, c); }
void AdamUpdate::cuda(const Problem<Params>& p, Candidates& c) { offer("plumb:adam", p, c); }
void RmsPropUpdate::cuda(const Problem<Params>& p, Candidates& c) { offer("plumb:rmsprop", p, c); }

}  // namespace plumb
