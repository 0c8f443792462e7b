#include "kernels/index_select.h"

#include "kernels/cpu/movement/along.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"

namespace plumb {
namespace {

using cpu::Along;

constexpr unsigned kThreads = 256;

template <class Word>
struct SelectArgs {
  const Word* x;
  const int64_t* index;
  Word* y;
  cuda::Split of_y;
  int64_t slices, count;  // of x; of y's words
  Fault* fault;
  uint64_t sentence;
};

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) index_select_kernel(const SelectArgs<Word> a) {
  const auto fetch = [&](int64_t at) {
    int64_t within = at, i = a.of_y.inner.divide(within);
    const int64_t outer = a.of_y.extent.divide(i), from = cuda::get(a.index + i);
    const bool is_good = from >= 0 && from < a.slices;
    if (!is_good && within == 0) cuda::report(a.fault, a.sentence, i, from, a.slices);
    return is_good ? cuda::get(a.x + (outer * a.slices + from) * a.of_y.inner.by + within) : Word{};
  };
  cuda::for_scattered<Word>(a.count, fetch, [&](int64_t at, const Word& v) { cuda::put(a.y + at, v); });
}

template <class Word>
std::unique_ptr<Kernel> select_kernel(const Along& x, int64_t n, int64_t run_bytes, Device device) {
  const int64_t words = run_bytes / static_cast<int64_t>(sizeof(Word));
  SelectArgs<Word> args{};
  args.of_y = cuda::Split(n, words);
  args.slices = x.extent;
  args.count = x.outer * n * words;
  args.fault = runtime_of(device).fault();
  args.sentence = cuda::sentence_of(IndexSelect::kBadIndex);
  return cuda::own("plumb:index_select", device, 1, [args](const cuda::Queue& q, const Launch& l) {
    SelectArgs<Word> now = args;
    now.x = static_cast<const Word*>(l.in[0]);
    now.index = static_cast<const int64_t*>(l.in[1]);
    now.y = static_cast<Word*>(l.out[0]);
    q.launch<index_select_kernel<Word>>(cuda::grid_over(q.runtime(), now.count, kThreads), now);
  });
}

}  // namespace

void IndexSelect::cuda(const Problem<Params>& p, Candidates& candidates) {
  const Along x(p.in[0], static_cast<int>(p.params.dim));
  const int64_t n = p.in[1].numel(), run = x.inner * static_cast<int64_t>(size_of(p.in[0].dtype));
  const auto offer = [&]<class Word>() {
    candidates.add("loop", [=, device = p.device] { return select_kernel<Word>(x, n, run, device); });
  };
  if (run % 16 == 0) return offer.template operator()<cuda::Piece<uint32_t, 4>>();
  const int64_t word = run & -run;  // the largest power of two that divides it
  cuda::dispatch_size(static_cast<size_t>(word), offer);
}

}  // namespace plumb
