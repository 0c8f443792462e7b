// Parts of tensors: slices, padding, and one tensor behind the other.
#include "kernels/slice.h"

#include "kernels/cpu/movement/convert.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;

// A box of elements that moves between two tensors.
template <class Word>
struct BoxArgs {
  const Word* x;
  Word* y;
  cuda::Steps steps;  // of the box, with the offsets in x and in y
};

template <class Word>
__global__ void __launch_bounds__(kThreads) box_kernel(const BoxArgs<Word> a) {
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
struct PadArgs {
  const Word* x;
  Word* y;
  Word value;
  int rank;
  int64_t count;
  cuda::Divisor extent[kMaxRank];                               // of y in memory order, innermost first
  int64_t begin[kMaxRank], inside[kMaxRank], stride[kMaxRank];  // of x in y
};

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) pad_kernel(const PadArgs<Word> a) {
  const auto fetch = [&](int64_t i) {
    int64_t rest = i, at = 0;
    bool is_inside = true;
    for (int d = 0; d < a.rank; ++d) {
      int64_t index = rest;
      rest = a.extent[d].divide(index);
      index -= a.begin[d];
      is_inside &= index >= 0 && index < a.inside[d];
      at += index * a.stride[d];
    }
    return is_inside ? cuda::get(a.x + at) : a.value;
  };
  cuda::for_scattered<Word>(a.count, fetch, [&](int64_t i, Word v) { cuda::put(a.y + i, v); });
}

template <class Word>
void launch_box(const cuda::Queue& q, const cuda::Steps& steps, const void* x, int64_t from, void* y, int64_t to) {
  q.launch<box_kernel<Word>>(cuda::grid_over(q.runtime(), steps.count, kThreads),
                             BoxArgs<Word>{static_cast<const Word*>(x) + from, static_cast<Word*>(y) + to, steps});
}

template <class Word>
void offer_slice(const Problem<SliceParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const Strides xs = strides_of(x);
  int64_t from = 0;
  for (int d = 0; d < x.rank(); ++d) from += p.params.begin[d] * xs[d];
  const auto run = [from, steps = cuda::Steps(y, xs, strides_of(y))](const cuda::Queue& q, const Launch& l) {
    launch_box<Word>(q, steps, l.in[0], from, l.out[0], 0);
  };
  cuda::offer(candidates, "loop", "plumb:slice", p.device, 1, run);
}

template <class Word>
void offer_pad(const Problem<PadParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  PadArgs<Word> args{};
  args.rank = y.rank();
  args.count = y.numel();
  const Strides xs = strides_of(x);
  const DimOrder order = memory_order(y.layout, y.rank());
  for (int i = 0; i < y.rank(); ++i) {
    const int d = order[y.rank() - 1 - i];
    args.extent[i] = cuda::Divisor(std::max<int64_t>(1, y.shape[d]));
    args.begin[i] = p.params.begin[d];
    args.inside[i] = x.shape[d];
    args.stride[i] = xs[d];
  }
  args.value = cpu::bits_of<Word>(y.dtype, static_cast<double>(p.params.value));
  cuda::offer(candidates, "loop", "plumb:pad", p.device, 1, [args](const cuda::Queue& q, const Launch& l) {
    PadArgs<Word> now = args;
    now.x = static_cast<const Word*>(l.in[0]);
    now.y = static_cast<Word*>(l.out[0]);
    q.launch<pad_kernel<Word>>(cuda::grid_over(q.runtime(), now.count, kThreads), now);
  });
}

template <class Word>
void offer_concat(const Problem<ConcatParams>& p, Candidates& candidates) {
  struct Part {
    cuda::Steps steps;
    int64_t to;
  };
  const Strides ys = strides_of(p.out[0]);
  std::vector<Part> parts;
  int64_t to = 0;
  for (const TensorSpec& x : p.in) {
    parts.push_back({cuda::Steps(x, strides_of(x), ys), to});
    to += x.shape[static_cast<int>(p.params.dim)] * ys[static_cast<int>(p.params.dim)];
  }
  const auto run = [parts](const cuda::Queue& q, const Launch& l) {
    for (size_t i = 0; i < parts.size(); ++i) launch_box<Word>(q, parts[i].steps, l.in[i], 0, l.out[0], parts[i].to);
  };
  cuda::offer(candidates, "loop", "plumb:concat", p.device, static_cast<int>(parts.size()), run);
}

}  // namespace

void Slice::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer_slice<Word>(p, c); });
}
void Pad::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer_pad<Word>(p, c); });
}
void Concat::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer_concat<Word>(p, c); });
}

}  // namespace plumb
