#include "kernels/dropout.h"

#include <algorithm>

#include "core/random.h"
#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

using cuda::Compute;
using cuda::Piece;

constexpr unsigned kThreads = 256;
constexpr int kWords = 4;  // of a block of Philox

template <class T>
__device__ T scaled(T v, bool is_kept, Compute<T> scale) {
  return cuda::rounded<T>(is_kept ? cuda::wide(v) * scale : Compute<T>(0));
}

template <class T>
struct DropoutArgs {
  const T* x;
  T* y;
  uint8_t* mask;         // or null
  const int64_t* state;  // seed, and blocks used so far
  int64_t n;
  uint32_t threshold;
  Compute<T> scale;
  int64_t columns, pieces;     // of the transposed order; pieces are what threads have at a time
  cuda::Divisor rows, of_row;  // rows, or pieces of them; blocks that a row has part in
};

/// The words of blocks, for a thread of a kernel; what they all share is read once.
struct Words {
  uint64_t seed, offset;
  __device__ explicit Words(const int64_t* state)
      : seed(static_cast<uint64_t>(cuda::get(state))), offset(static_cast<uint64_t>(cuda::get(state + 1))) {}
  __device__ std::array<uint32_t, kWords> of(int64_t block) const { return of<1>(block, 0)[0]; }
  /// Of kBlocks blocks, `step` from one to the next: the key of a round is computed once for all.
  template <size_t kBlocks>
  __device__ std::array<std::array<uint32_t, kWords>, kBlocks> of(int64_t first, int64_t step) const {
    std::array<std::array<uint32_t, kWords>, kBlocks> words;
    for (size_t b = 0; b < kBlocks; ++b) {
      const uint64_t counter = offset + static_cast<uint64_t>(first + static_cast<int64_t>(b) * step);
      words[b] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                  static_cast<uint32_t>(kDropoutStream), static_cast<uint32_t>(kDropoutStream >> 32)};
    }
    auto k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
    for (int i = 0; i < Philox::kRounds; ++i, Philox::next_key(k0, k1)) {
      for (auto& w : words) Philox::round(w[0], w[1], w[2], w[3], k0, k1);
    }
    return words;
  }
};

// Elements of memory in logical order, whole blocks of words a thread.
template <class T>
constexpr int kEachInOrder = std::max<int>(kWords, cuda::Vector<T>::kSize);

/// What is left behind whole pieces, an element a thread.
template <class T>
__device__ void put_rest(const DropoutArgs<T>& a, const Words& words, int64_t begin) {
  const int64_t i = begin + cuda::thread_of_grid();
  if (i >= a.n) return;
  const auto of_block = words.of(i / kWords);
  bool is_kept = false;
  for (int j = 0; j < kWords; ++j) is_kept |= i % kWords == j && of_block[static_cast<size_t>(j)] >= a.threshold;
  cuda::put(a.y + i, scaled(cuda::get(a.x + i), is_kept, a.scale));
  if (a.mask) cuda::put(a.mask + i, static_cast<uint8_t>(is_kept));
}

template <class T>
__global__ void __launch_bounds__(kThreads) dropout_kernel(const DropoutArgs<T> a) {
  constexpr int kEach = kEachInOrder<T>;
  const Words words(a.state);
  const int64_t whole = a.n / kEach * kEach;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid() * kEach; i < whole; i += cuda::threads_of_grid() * kEach) {
    auto v = cuda::load_piece<kEach>(a.x + i);
    Piece<uint8_t, kEach> kept;
    const auto of_blocks = words.of<kEach / kWords>(i / kWords, 1);
    for (size_t k = 0; k < kEach; ++k) {
      const bool is_kept = of_blocks[k / kWords][k % kWords] >= a.threshold;
      kept.of[k] = is_kept;
      v.of[k] = scaled(v.of[k], is_kept, a.scale);
    }
    cuda::store_piece(a.y + i, v);
    if (a.mask) cuda::store_piece(a.mask + i, kept);
  }
  put_rest(a, words, whole);
}

// Other layouts, where rows are whole blocks of words and as many as make pieces: a thread has a piece of neighbouring
// rows, and of each a block, whose words lie in four pieces of memory.
template <class T>
__global__ void __launch_bounds__(kThreads, 2) dropout_pieces_kernel(const DropoutArgs<T> a) {
  constexpr int kEach = cuda::Vector<T>::kSize, kTogether = std::min(kEach, 4);  // blocks, for which registers suffice
  const Words words(a.state);
  const int64_t rows = a.rows.by * kEach;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.pieces; i += cuda::threads_of_grid()) {
    int64_t piece = i, number = a.rows.divide(piece);
    const int64_t matrix = a.of_row.divide(number), row = matrix * rows + piece * kEach;
    const int64_t memory = (matrix * a.columns + number * kWords) * rows + piece * kEach;
    Piece<T, kEach> v[kWords];
#pragma unroll
    for (int j = 0; j < kWords; ++j) v[j] = cuda::load_piece<kEach>(a.x + memory + j * rows);
    Piece<uint8_t, kEach> kept[kWords];
#pragma unroll
    for (int k = 0; k < kEach; k += kTogether) {
      const auto of_blocks = words.of<kTogether>((row + k) * a.of_row.by + number, a.of_row.by);
      for (int b = 0; b < kTogether; ++b) {
        for (int j = 0; j < kWords; ++j) {
          const bool is_kept = of_blocks[static_cast<size_t>(b)][static_cast<size_t>(j)] >= a.threshold;
          kept[j].of[k + b] = is_kept;
          v[j].of[k + b] = scaled(v[j].of[k + b], is_kept, a.scale);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kWords; ++j) {
      cuda::store_piece(a.y + memory + j * rows, v[j]);
      if (a.mask) cuda::store_piece(a.mask + memory + j * rows, kept[j]);
    }
  }
}

// The others: a thread has what a row has of a block of words, neighbouring threads neighbouring rows of memory. A row
// need not begin with a block.
template <class T>
__global__ void __launch_bounds__(kThreads) dropout_transposed_kernel(const DropoutArgs<T> a) {
  const Words words(a.state);
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.pieces; i += cuda::threads_of_grid()) {
    int64_t row = i;
    int64_t number = a.rows.divide(row);
    const int64_t matrix = a.of_row.divide(number);
    const int64_t first = (matrix * a.rows.by + row) * a.columns, block = first / kWords + number;
    const auto of_block = words.of(block);
    const int64_t memory = matrix * a.rows.by * a.columns + row;
    for (int j = 0; j < kWords; ++j) {
      const int64_t column = block * kWords + j - first;
      if (column < 0 || column >= a.columns) continue;
      const bool is_kept = of_block[static_cast<size_t>(j)] >= a.threshold;
      const int64_t at = memory + column * a.rows.by;
      cuda::put(a.y + at, scaled(cuda::get(a.x + at), is_kept, a.scale));
      if (a.mask) cuda::put(a.mask + at, static_cast<uint8_t>(is_kept));
    }
  }
}

struct AdvanceArgs {
  int64_t* state;
  int64_t blocks;
};
__global__ void __launch_bounds__(1) dropout_advance_kernel(const AdvanceArgs a) { a.state[1] += a.blocks; }

template <class T>
struct DropoutBackwardArgs {
  const T* dy;
  const uint8_t* mask;
  T* dx;
  int64_t n;
  Compute<T> scale;
};
template <class T>
__global__ void __launch_bounds__(kThreads) dropout_backward_kernel(const DropoutBackwardArgs<T> a) {
  cuda::for_dense<cuda::Vector<T>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    auto v = cuda::load_piece<kEach>(a.dy + i);
    const auto kept = cuda::load_piece<kEach>(a.mask + i);
    for (int j = 0; j < kEach; ++j) v.of[j] = scaled(v.of[j], kept.of[j] != 0, a.scale);
    cuda::store_piece(a.dx + i, v);
  });
}

}  // namespace

void DropoutForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("philox", [x = p.in[0], params = p.params, has_mask = p.out.size() == 2, device = p.device] {
      const double probability = params.p;
      const detail::DropoutOrder order(x);
      DropoutArgs<T> args{};
      args.n = x.numel();
      args.threshold = static_cast<uint32_t>(probability * 0x1p32);
      args.scale = static_cast<Compute<T>>(1 / (1 - probability));
      constexpr int64_t kPiece = cuda::Vector<T>::kSize;
      const bool has_blocks = order.columns % kWords == 0, has_pieces = has_blocks && order.rows % kPiece == 0;
      const int64_t lead = has_blocks ? 0 : kWords - 1;  // of a block, may be of the row before
      const int64_t of_row = (order.columns + lead + kWords - 1) / kWords, at_a_time = has_pieces ? kPiece : 1;
      args.columns = order.columns;
      args.pieces = order.batch * of_row * (order.rows / at_a_time);
      args.rows = cuda::Divisor(order.rows / at_a_time);
      args.of_row = cuda::Divisor(std::max<int64_t>(1, of_row));
      const bool is_in_order = order.batch * order.rows == 1;
      return cuda::own("plumb:dropout", device, 2, [=](const cuda::Queue& q, const Launch& l) {
        DropoutArgs<T> now = args;
        now.x = static_cast<const T*>(l.in[0]);
        now.y = static_cast<T*>(l.out[0]);
        now.mask = has_mask ? static_cast<uint8_t*>(l.out[1]) : nullptr;
        now.state = static_cast<const int64_t*>(l.in[1]);
        if (is_in_order) {
          constexpr int64_t kEach = kEachInOrder<T>;
          q.launch<dropout_kernel<T>>(cuda::grid_over(q.runtime(), (now.n + kEach - 1) / kEach, kThreads), now);
        } else {
          const cuda::Grid grid = cuda::grid_over(q.runtime(), now.pieces, kThreads);
          has_pieces ? q.launch<dropout_pieces_kernel<T>>(grid, now)
                     : q.launch<dropout_transposed_kernel<T>>(grid, now);
        }
        const AdvanceArgs advance{static_cast<int64_t*>(l.in[1]), (now.n + kWords - 1) / kWords};
        q.launch<dropout_advance_kernel>(cuda::Grid{{1}, {1}}, advance);
      });
    });
  });
}

void DropoutBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    const auto scale = static_cast<Compute<T>>(1 / (1 - static_cast<double>(p.params.p)));
    const auto run = [scale, n = p.in[0].numel()](const cuda::Queue& q, const Launch& l) {
      q.launch<dropout_backward_kernel<T>>(
          cuda::grid_over(q.runtime(), n / cuda::Vector<T>::kSize + 1, kThreads),
          DropoutBackwardArgs<T>{static_cast<const T*>(l.in[0]), static_cast<const uint8_t*>(l.in[1]),
                                 static_cast<T*>(l.out[0]), n, scale});
    };
    cuda::offer(candidates, "loop", "plumb:dropout_backward", p.device, 1, run);
  });
}

}  // namespace plumb
