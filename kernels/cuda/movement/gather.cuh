// Elements that lie anywhere in x, into a dense y: by words as wide as what lies together in both, or by pieces of y.
#pragma once

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"

namespace plumb::cuda {

constexpr unsigned kGatherThreads = 256;

/// The bytes of the widest word, up to 16, by which what is `bytes` each moves between offsets in x and in y.
inline int64_t bytes_together(const Steps& s, int64_t bytes, int64_t of_x = 0, int64_t of_y = 0) {
  if (s.rank == 0 || s.x[0] != 1 || s.y[0] != 1) return bytes;
  int64_t all = s.extent[0].by | of_x | of_y;
  for (int d = 1; d < s.rank; ++d) all |= s.x[d] | s.y[d];
  all = all * bytes | 16;
  return all & -all;
}
/// The same steps with `each` elements as one, which lie together.
inline Steps in_words(const Steps& s, int64_t each) {
  if (each == 1) return s;
  Steps words = s;
  words.count = s.count / each;
  words.extent[0] = Divisor(s.extent[0].by / each);
  for (int d = 1; d < s.rank; ++d) {
    words.x[d] = s.x[d] / each;
    words.y[d] = s.y[d] / each;
  }
  return words;
}
/// Calls f.template operator()<Word>() with a word of 1, 2, 4, 8 or 16 bytes.
template <class F>
decltype(auto) dispatch_word(int64_t bytes, F&& f) {
  if (bytes == 16) return f.template operator()<Piece<uint32_t, 4>>();
  return dispatch_size(static_cast<size_t>(bytes), f);
}

template <class Word>
struct GatherArgs {
  const Word* x;
  Word* y;
  Steps steps;  // of y in memory order, with the offsets in x
};

template <class Word>
__global__ void __launch_bounds__(kGatherThreads, kLeastBlocks) gather_kernel(const GatherArgs<Word> a) {
  for_scattered<Word>(
      a.steps.count, [&](int64_t i) { return get(a.x + a.steps.of_x(i)); },
      [&](int64_t i, const Word& v) { put(a.y + i, v); });
}

template <class Word>
struct GatherPiecesArgs {
  const Word* x;
  Word* y;
  int64_t count;
  Divisor run;   // neighbours in y that are one element of x, or neighbours in it
  Steps others;  // around them
};

// A piece of y at a time, which ends in its run or in the next, or (kHasThree) in the one after that: runs are no
// shorter than a piece, or than half of one.
template <class Word, bool kIsRepeated, bool kHasThree = false>
__global__ void __launch_bounds__(kGatherThreads, kLeastBlocks) expand_pieces_kernel(const GatherPiecesArgs<Word> a) {
  static_assert(!(kIsRepeated && kHasThree));
  for_dense<Vector<Word>::kSize>(a.count, [&]<int kEach>(int64_t i) {
    int64_t within = i;
    const int64_t run = a.run.divide(within), left = a.run.by - within, more = left + a.run.by;
    const Word* const x = a.x + a.others.of_x(run) + (kIsRepeated ? 0 : within);
    const Word* next = x;
    if (left < kEach) next = a.x + a.others.of_x(run + 1) - (kIsRepeated ? 0 : left);
    const Word* last = next;
    if (kHasThree && more < kEach) last = a.x + a.others.of_x(run + 2) - more;
    Piece<Word, kEach> v;
    if constexpr (kIsRepeated) {
      const Word here = get(x), there = left < kEach ? get(next) : here;
#pragma unroll
      for (int j = 0; j < kEach; ++j) v.of[j] = j < left ? here : there;
    } else {
#pragma unroll
      for (int j = 0; j < kEach; ++j) v.of[j] = get((j < left ? x : !kHasThree || j < more ? next : last) + j);
    }
    store_piece(a.y + i, v);
  });
}

template <class Word>
void offer_gather_words(const char* name, const Steps& steps, int64_t from, Device device, Candidates& candidates) {
  offer(candidates, "loop", name, device, 1, [=](const Queue& q, const Launch& l) {
    q.launch<gather_kernel<Word>>(
        grid_over(q.runtime(), steps.count, kGatherThreads),
        GatherArgs<Word>{static_cast<const Word*>(l.in[0]) + from, static_cast<Word*>(l.out[0]), steps});
  });
}

template <class Word, bool kIsRepeated, bool kHasThree = false>
void offer_gather_pieces(const char* name, const Steps& steps, int64_t from, Device device, Candidates& candidates) {
  GatherPiecesArgs<Word> args{};
  args.count = steps.count;
  args.run = steps.extent[0];
  for (int d = 1; d < steps.rank; ++d) args.others.add(steps.extent[d].by, steps.x[d], 0);
  offer(candidates, "loop", name, device, 1, [=](const Queue& q, const Launch& l) {
    GatherPiecesArgs<Word> now = args;
    now.x = static_cast<const Word*>(l.in[0]) + from;
    now.y = static_cast<Word*>(l.out[0]);
    q.launch<expand_pieces_kernel<Word, kIsRepeated, kHasThree>>(
        grid_over(q.runtime(), now.count / Vector<Word>::kSize + 1, kGatherThreads), now);
  });
}

/// Offers the kernel for steps over a dense y in memory order, whose first element is x's number `from`.
template <class Word>
void offer_gather(const char* name, const Steps& steps, int64_t from, Device device, Candidates& candidates) {
  constexpr int64_t kBytes = sizeof(Word);
  if (const int64_t word = bytes_together(steps, kBytes, from); word > kBytes) {
    const int64_t each = word / kBytes;
    return dispatch_word(word, [&]<class Wide>() {
      offer_gather_words<Wide>(name, in_words(steps, each), from / each, device, candidates);
    });
  }
  const int64_t run = steps.count > 0 && steps.rank > 0 ? steps.extent[0].by : 0, goes_on_by = steps.x[0];
  constexpr int64_t kPiece = Vector<Word>::kSize;
  if (run >= kPiece && goes_on_by == 1) return offer_gather_pieces<Word, false>(name, steps, from, device, candidates);
  if (run >= kPiece && goes_on_by == 0) return offer_gather_pieces<Word, true>(name, steps, from, device, candidates);
  if (2 * run >= kPiece && goes_on_by == 1) {
    return offer_gather_pieces<Word, false, true>(name, steps, from, device, candidates);
  }
  offer_gather_words<Word>(name, steps, from, device, candidates);
}

}  // namespace plumb::cuda
