// Padding: a tensor in a box of constants.
#include "kernels/slice.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/movement/convert.h"
#include "kernels/cuda/movement/gather.cuh"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;

// The dimensions of y in memory order, innermost first, where x lies in each, and its strides there. Those that are
// x's as they are, are one with the next.
struct Margins {
  int rank = 0;
  int64_t count = 1;
  cuda::Divisor extent[kMaxRank];
  int64_t begin[kMaxRank] = {}, inside[kMaxRank] = {}, stride[kMaxRank] = {};

  void add(int64_t n, int64_t from, int64_t of_x, int64_t step) {
    count *= n;
    const int last = rank - 1;
    if (rank > 0 && begin[last] == 0 && inside[last] == extent[last].by && step == stride[last] * inside[last]) {
      begin[last] = from * inside[last];
      inside[last] *= of_x;
      extent[last] = cuda::Divisor(std::max<int64_t>(1, n * extent[last].by));
      return;
    }
    extent[rank] = cuda::Divisor(std::max<int64_t>(1, n));
    begin[rank] = from;
    inside[rank] = of_x;
    stride[rank++] = step;
  }
  /// The same with `each` elements as one.
  Margins in_words(int64_t each) const {
    Margins words = *this;
    words.count /= each;
    words.extent[0] = cuda::Divisor(extent[0].by / each);
    words.begin[0] /= each;
    words.inside[0] /= each;
    for (int d = 1; d < rank; ++d) words.stride[d] /= each;
    return words;
  }
};

template <class Word>
struct PadArgs {
  const Word* x;
  Word* y;
  Word value;
  Margins of;
};

// A row of y along its innermost dimension: the elements of x in it, if there are any.
template <class Word>
struct Row {
  const Word* x;
  bool is_inside = true;

  __device__ Row(const PadArgs<Word>& a, int64_t rest) : x(a.x) {
    for (int d = 1; d < a.of.rank; ++d) {
      int64_t index = rest;
      if (d < a.of.rank - 1) rest = a.of.extent[d].divide(index);
      index -= a.of.begin[d];
      is_inside &= index >= 0 && index < a.of.inside[d];
      x += index * a.of.stride[d];
    }
  }
  /// That at i from where x begins, which may be before it or behind it.
  template <class Index>
  __device__ Word at(const PadArgs<Word>& a, Index i) const {
    using Bits = std::make_unsigned_t<Index>;
    Word v = a.value;
    if (is_inside && static_cast<Bits>(i) < static_cast<Bits>(a.of.inside[0])) v = cuda::get(x + i);
    return v;
  }
};

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) pad_kernel(const PadArgs<Word> a) {
  const auto fetch = [&](int64_t i) {
    const int64_t row = a.of.extent[0].divide(i);
    return Row<Word>(a, row).at(a, i - a.of.begin[0]);
  };
  cuda::for_scattered<Word>(a.of.count, fetch, [&](int64_t i, const Word& v) { cuda::put(a.y + i, v); });
}

// A piece of y at a time, which ends in its row or in the next: rows are no shorter than a piece.
template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) pad_pieces_kernel(const PadArgs<Word> a) {
  cuda::for_dense<cuda::Vector<Word>::kSize>(a.of.count, [&]<int kEach>(int64_t i) {
    int64_t within = i;
    const int64_t row = a.of.extent[0].divide(within);
    const int begin = static_cast<int>(a.of.begin[0]), from = static_cast<int>(within) - begin;
    const int left = static_cast<int>(a.of.extent[0].by - within);
    const Row<Word> here(a, row);
    cuda::Piece<Word, kEach> v;
    if (left >= kEach) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) v.of[j] = here.at(a, from + j);
    } else {
      const Row<Word> next(a, row + 1);
#pragma unroll
      for (int j = 0; j < kEach; ++j) v.of[j] = j < left ? here.at(a, from + j) : next.at(a, j - left - begin);
    }
    cuda::store_piece(a.y + i, v);
  });
}

template <class Word, bool kIsOfPieces>
void offer_pad_of(const PadArgs<Word>& args, Device device, Candidates& candidates) {
  cuda::offer(candidates, "loop", "plumb:pad", device, 1, [args](const cuda::Queue& q, const Launch& l) {
    PadArgs<Word> now = args;
    now.x = static_cast<const Word*>(l.in[0]);
    now.y = static_cast<Word*>(l.out[0]);
    if constexpr (kIsOfPieces) {
      const int64_t pieces = now.of.count / cuda::Vector<Word>::kSize + 1;
      q.launch<pad_pieces_kernel<Word>>(cuda::grid_over(q.runtime(), pieces, kThreads), now);
    } else {
      q.launch<pad_kernel<Word>>(cuda::grid_over(q.runtime(), now.of.count, kThreads), now);
    }
  });
}

// The bytes of the widest word that is wholly inside of x or wholly outside everywhere.
int64_t bytes_together(const Margins& of, int64_t bytes) {
  if (of.rank == 0 || of.stride[0] != 1) return bytes;
  int64_t all = of.extent[0].by | of.begin[0] | of.inside[0];
  for (int d = 1; d < of.rank; ++d) all |= of.stride[d];
  all = all * bytes | 16;
  return all & -all;
}

template <class Word>
void offer_pad(const Margins& of, Word value, Device device, Candidates& candidates) {
  const int64_t word = bytes_together(of, sizeof(Word)), each = word / static_cast<int64_t>(sizeof(Word));
  if (each > 1) {
    return cuda::dispatch_word(word, [&]<class Wide>() {
      PadArgs<Wide> args{};
      for (size_t i = 0; i < sizeof(Wide); i += sizeof(Word))
        std::memcpy(reinterpret_cast<char*>(&args.value) + i, &value, sizeof value);
      args.of = of.in_words(each);
      offer_pad_of<Wide, false>(args, device, candidates);
    });
  }
  PadArgs<Word> args{};
  args.value = value;
  args.of = of;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const int64_t row = of.rank > 0 && of.stride[0] == 1 ? of.extent[0].by : 0;
  if (row >= cuda::Vector<Word>::kSize && row <= kMost) return offer_pad_of<Word, true>(args, device, candidates);
  offer_pad_of<Word, false>(args, device, candidates);
}

}  // namespace

void Pad::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const Strides xs = strides_of(x);
  const DimOrder order = memory_order(y.layout, y.rank());
  Margins of;
  for (int i = y.rank() - 1; i >= 0; --i)
    of.add(y.shape[order[i]], p.params.begin[order[i]], x.shape[order[i]], xs[order[i]]);
  cuda::dispatch_size(size_of(y.dtype), [&]<class Word>() {
    offer_pad(of, cpu::bits_of<Word>(y.dtype, static_cast<double>(p.params.value)), p.device, c);
  });
}

}  // namespace plumb
