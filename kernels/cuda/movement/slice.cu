// Parts of tensors: slices, and one tensor behind the other.
#include "kernels/slice.h"

#include <functional>

#include "kernels/cuda/movement/gather.cuh"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;

// Boxes of words, each of which moves from a tensor of its own into a part of y.
template <class Word>
struct BoxesArgs {
  static constexpr int kMost = 8;
  struct Box {
    const Word* x;
    int64_t to;
    cuda::Steps steps;  // of the box, with the offsets in x and in y
  };
  Box boxes[kMost];  // by the block's number along y
  Word* y;
};

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) boxes_kernel(const BoxesArgs<Word> a) {
  const auto& box = a.boxes[blockIdx.y];
  struct Moved {
    Word v;
    int64_t to;
  };
  const auto fetch = [&](int64_t i) {
    int64_t x = 0, y = box.to;
    box.steps.move(i, x, y);
    return Moved{cuda::get(box.x + x), y};
  };
  cuda::for_scattered<Word>(box.steps.count, fetch, [&](int64_t, const Moved& m) { cuda::put(a.y + m.to, m.v); });
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
};

// Parts that one launch moves: those of as wide words, from the input `first` on.
struct Together {
  using Run = std::function<void(const cuda::Queue&, const Launch&)>;
  size_t first;
  std::vector<Part> parts;

  bool takes(const Part& part) const {
    return parts.size() < BoxesArgs<uint32_t>::kMost && parts.front().word == part.word;
  }
  template <class Word>
  Run launch_of_words() const {
    BoxesArgs<Word> args{};
    int64_t most = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      args.boxes[i] = {nullptr, parts[i].to, parts[i].steps};
      most = std::max(most, parts[i].steps.count);
    }
    return [args, most, from = first, count = parts.size()](const cuda::Queue& q, const Launch& l) {
      BoxesArgs<Word> now = args;
      now.y = static_cast<Word*>(l.out[0]);
      for (size_t i = 0; i < count; ++i) now.boxes[i].x = static_cast<const Word*>(l.in[from + i]);
      cuda::Grid grid = cuda::grid_over(q.runtime(), most, kThreads);
      grid.blocks.y = static_cast<unsigned>(count);
      q.launch<boxes_kernel<Word>>(grid, now);
    };
  }
  Run launch() const {
    return cuda::dispatch_word(parts.front().word, [&]<class Word>() { return launch_of_words<Word>(); });
  }
};

}  // namespace

void Slice::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer_slice<Word>(p, c); });
}
void Concat::cuda(const Problem<Params>& p, Candidates& c) {
  const Strides ys = strides_of(p.out[0]);
  const int dim = static_cast<int>(p.params.dim);
  std::vector<Together> together;
  int64_t to = 0;
  for (size_t i = 0; i < p.in.size(); ++i) {
    const TensorSpec& x = p.in[i];
    const Part part(x, ys, to);
    to += x.shape[dim] * ys[dim];
    if (together.empty() || !together.back().takes(part)) together.push_back({i, {}});
    together.back().parts.push_back(part);
  }
  std::vector<Together::Run> launches;
  for (const Together& parts : together) launches.push_back(parts.launch());
  const auto run = [launches](const cuda::Queue& q, const Launch& l) {
    for (const auto& launch : launches) launch(q, l);
  };
  cuda::offer(c, "loop", "plumb:concat", p.device, static_cast<int>(launches.size()), run);
}

}  // namespace plumb
