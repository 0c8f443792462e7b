// The terms of lines in pieces of neighbours, which threads share.
#pragma once

#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/lines.h"

namespace plumb::cuda {

/// The pieces of a line: runs of them, and what steps over as many as share the line. Nothing is divided from one piece
/// of a thread to its next. Of terms in more than two dimensions, the two innermost are gone through for each of
/// `outer`.
struct Terms {
  Steps outer;
  int64_t pieces = 0;                // of each of `outer`
  int64_t of_piece = 0, of_run = 0;  // what the next piece, and the next run, add to an offset
  int64_t of_step = 0, of_wrap = 0;  // and a step, and going on to a run more
  Divisor in_run, sharers;           // pieces of a run, and threads that share a line
  uint32_t pieces_of_step = 0;       // in the run where it ends
  int64_t rest = 0;                  // terms past the last whole piece

  Terms() = default;
  Terms(const Steps& terms, int each, int64_t shared_by) : sharers(shared_by) {
    const int64_t inner = terms.rank > 0 ? terms.extent[0].by : 1, of_inner = terms.rank > 0 ? terms.x[0] * each : 0;
    const bool has_runs = terms.rank > 1 && inner / each <= std::numeric_limits<int32_t>::max();
    // One dimension is runs of one piece.
    const int64_t length = has_runs ? inner / each : 1;
    in_run = Divisor(length);
    of_piece = of_inner;
    of_run = has_runs ? terms.x[1] : of_inner;
    pieces = terms.count == 0 ? 0 : inner / each * (has_runs ? terms.extent[1].by : 1);
    of_step = shared_by / length * of_run + shared_by % length * of_piece;
    of_wrap = of_run - length * of_piece;
    pieces_of_step = static_cast<uint32_t>(shared_by % length);
    for (int d = has_runs ? 2 : 1; d < terms.rank; ++d) outer.add(terms.extent[d].by, terms.x[d], 0);
    if (terms.count > 0) rest = inner % each;
  }
  __device__ struct OwnPieces own(int64_t first) const;
};

/// The pieces of a thread, from `first` on; the same in every line.
struct OwnPieces {
  int64_t first, offset;
  unsigned turns;
  uint32_t in_run;  // where in its run the first is
};
__device__ inline OwnPieces Terms::own(int64_t first) const {
  if (first >= pieces) return {first, 0, 0, 0};
  int64_t in_first_run = first;
  const int64_t run = in_run.divide(in_first_run);
  return {first, run * of_run + in_first_run * of_piece,
          static_cast<unsigned>(sharers.quotient(pieces - 1 - first)) + 1, static_cast<uint32_t>(in_first_run)};
}

/// Which terms the pieces of a thread are: of kEach terms each.
template <int kEach>
struct OwnTerms {
  int64_t first, step;  // pieces

  /// The number in the line of the thread's term number k.
  __device__ int64_t number(unsigned k) const { return (first + int64_t{k / kEach} * step) * kEach + k % kEach; }
};

/// use(piece, turn) for a thread's pieces of a line that begins at x. Several are under way from memory at a time: with
/// one, a thread would do nothing but wait.
template <int kEach, class T, class Use>
__device__ void for_own_pieces(const Terms& t, const T* x, const OwnPieces& own, const Use& use) {
  constexpr unsigned kUnderWay = kEach == 1 ? 8 : 4;
  const auto in_run = static_cast<uint32_t>(t.in_run.by);
#pragma unroll 1
  for (int64_t i = 0; i < t.outer.count; ++i) {
    const T* at = x + t.outer.of_x(i) + own.offset;
    uint32_t piece = own.in_run;
    unsigned turn = 0;
    const auto round = [&]<bool kIsWhole>() {
      Piece<T, kEach> v[kUnderWay];
#pragma unroll
      for (unsigned j = 0; j < kUnderWay; ++j) {
        if (kIsWhole || turn + j < own.turns) v[j] = load_piece<kEach>(at);
        at += t.of_step;
        piece += t.pieces_of_step;
        if (piece >= in_run) {
          piece -= in_run;
          at += t.of_wrap;
        }
      }
#pragma unroll
      for (unsigned j = 0; j < kUnderWay; ++j) {
        if (kIsWhole || turn + j < own.turns) use(v[j], turn + j);
      }
      turn += kUnderWay;
    };
#pragma unroll 1
    while (turn + kUnderWay <= own.turns) round.template operator()<true>();
    if (turn < own.turns) round.template operator()<false>();
  }
}

}  // namespace plumb::cuda
