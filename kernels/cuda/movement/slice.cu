// Parts of tensors: slices, and one tensor behind the other.
#include "kernels/slice.h"

#include "kernels/cuda/movement/gather.cuh"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;

// A box of words that moves between two tensors.
template <class Word>
struct BoxArgs {
  const Word* x;
  Word* y;
  cuda::Steps steps;  // of the box, with the offsets in x and in y
};

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) box_kernel(const BoxArgs<Word> a) {
  struct Moved {
    Word v;
    int64_t to;
  };
  const auto fetch = [&](int64_t i) {
    int64_t x = 0, y = 0;
    a.steps.move(i, x, y);
    return Moved{cuda::get(a.x + x), y};
  };
  cuda::for_scattered<Word>(a.steps.count, fetch, [&](int64_t, const Moved& m) { cuda::put(a.y + m.to, m.v); });
}

template <class Word>
void offer_slice(const Problem<SliceParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const Strides xs = strides_of(x);
  int64_t from = 0;
  for (int d = 0; d < x.rank(); ++d) from += p.params.begin[d] * xs[d];
  cuda::offer_gather<Word>("plumb:slice", cuda::Steps(y, xs, strides_of(y)), from, p.device, candidates);
}

// A part of a tensor that is another, by words of some bytes.
struct Part {
  cuda::Steps steps;
  int64_t to, word;

  Part(const TensorSpec& x, const Strides& ys, int64_t to_element) : steps(x, strides_of(x), ys) {
    const auto bytes = static_cast<int64_t>(size_of(x.dtype));
    word = cuda::bytes_together(steps, bytes, 0, to_element);
    steps = cuda::in_words(steps, word / bytes);
    to = to_element * bytes / word;
  }
  template <class Word>
  void launch(const cuda::Queue& q, const void* x, void* y) const {
    q.launch<box_kernel<Word>>(cuda::grid_over(q.runtime(), steps.count, kThreads),
                               BoxArgs<Word>{static_cast<const Word*>(x), static_cast<Word*>(y) + to, steps});
  }
};

}  // namespace

void Slice::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer_slice<Word>(p, c); });
}
void Concat::cuda(const Problem<Params>& p, Candidates& c) {
  const Strides ys = strides_of(p.out[0]);
  const int dim = static_cast<int>(p.params.dim);
  std::vector<Part> parts;
  int64_t to = 0;
  for (const TensorSpec& x : p.in) {
    parts.emplace_back(x, ys, to);
    to += x.shape[dim] * ys[dim];
  }
  const auto run = [parts](const cuda::Queue& q, const Launch& l) {
    for (size_t i = 0; i < parts.size(); ++i)
      cuda::dispatch_word(parts[i].word, [&]<class Word>() { parts[i].launch<Word>(q, l.in[i], l.out[0]); });
  };
  cuda::offer(c, "loop", "plumb:concat", p.device, static_cast<int>(parts.size()), run);
}

}  // namespace plumb
