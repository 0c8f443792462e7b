// Softmax of lines that lie across memory, side by side. A block has some pieces of neighbouring lines, which its
// threads share and keep in registers.
#pragma once

#include "kernels/cuda/softmax/softmax.cuh"

namespace plumb::cuda::softmaxes {

/// As many terms of a piece of lines as a thread keeps, and the logarithm of the fewest pieces of a block: 32 bytes.
template <int kEach>
constexpr int kTermsOfThread = kEach == 1 ? 8 : 32 / kEach;
template <class T, int kEach>
constexpr unsigned kLeastLog = kEach == 1               ? 3
                               : sizeof(T) * kEach < 16 ? 2
                                                        : 1;

template <class C, int kEach>
struct AcrossShared {
  Piece<C, kEach> of_warps[kRowWarps][kWarp];
  Piece<C, kEach> totals[kWarp];
};

/// The threads of a block that share pieces of lines, which are `columns` many.
template <class C, int kEach>
struct ByBlockAcross {
  AcrossShared<C, kEach>& shared;
  unsigned columns;

  /// The values of those who share a line combined, and finish(what that is).
  template <class Combine, class Finish>
  __device__ Piece<C, kEach> all(Piece<C, kEach> v, const Combine& combine, const Finish& finish) const {
    const unsigned lane = threadIdx.x % kWarp, values = columns * kEach;
    for (unsigned distance = kWarp / 2; distance >= columns; distance /= 2) {
      for (int j = 0; j < kEach; ++j) v.of[j] = combine(v.of[j], __shfl_xor_sync(kAllLanes, v.of[j], distance));
    }
    if (lane < columns) shared.of_warps[threadIdx.x / kWarp][lane] = v;
    __syncthreads();
    static_assert(kWarp * kEach <= kRowThreads);
    if (threadIdx.x < values) {
      const unsigned piece = threadIdx.x / kEach, j = threadIdx.x % kEach;
      C total = shared.of_warps[0][piece].of[j];
#pragma unroll
      for (unsigned w = 1; w < kRowWarps; ++w) total = combine(total, shared.of_warps[w][piece].of[j]);
      shared.totals[piece].of[j] = finish(total);
    }
    __syncthreads();
    return shared.totals[threadIdx.x & (columns - 1)];
  }
};

template <class T, int kEach>
struct AcrossLines {
  using C = Compute<T>;
  static constexpr int kTerms = kTermsOfThread<kEach>;
  int64_t at, step;  // of this thread's first term, and from one to the next
  int there;         // how many there are

  __device__ AcrossLines(const SoftmaxArgs<T>& a, int64_t piece) : at(0), step(0), there(0) {
    const unsigned sharer = threadIdx.x >> a.log, sharers = kRowThreads >> a.log;
    if (piece * kEach >= a.count || sharer >= a.terms) return;
    at = a.template across<kEach>(piece) + sharer * a.stride;
    step = sharers * a.stride;
    there = static_cast<int>((static_cast<unsigned>(a.terms) - sharer + sharers - 1) / sharers);
  }
  template <class Body>
  __device__ void each(const Body& body) const {
#pragma unroll
    for (int k = 0; k < kTerms; ++k) {
      if (k < there) body(k, at + k * step);
    }
  }
};

template <int kEach, class T>
__device__ void forward_across(const SoftmaxArgs<T>& a, const AcrossLines<T, kEach>& lines,
                               const ByBlockAcross<Compute<T>, kEach>& who) {
  using C = Compute<T>;
  kept::RawPiece<T, kEach> x[kTermsOfThread<kEach>];
  C v[kTermsOfThread<kEach>][kEach];
  Piece<C, kEach> largest, sum{};
  for (int j = 0; j < kEach; ++j) largest.of[j] = -std::numeric_limits<C>::infinity();
  lines.each([&](int k, int64_t at) { x[k] = kept::load_raw<kEach>(a.x + at); });
  lines.each([&](int k, int64_t) {
    const auto elements = x[k].elements();
    for (int j = 0; j < kEach; ++j) largest.of[j] = kept::Larger()(largest.of[j], v[k][j] = wide(elements.of[j]));
  });
  largest = who.all(largest, kept::Larger(), [](C total) { return total; });
  lines.each([&](int k, int64_t) {
    for (int j = 0; j < kEach; ++j) {
      const C below = v[k][j] - largest.of[j], power = kept::power_below<T>(below);
      sum.of[j] += power;
      v[k][j] = a.is_log ? below : power;
    }
  });
  const auto last = who.all(sum, Sum(), [&](C total) { return last_step(a.is_log, total); });
  lines.each([&](int k, int64_t at) {
    Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) y.of[j] = rounded<T>(Scaling<C>(a.is_log, last.of[j])(v[k][j]));
    store_piece(a.out + at, y);
  });
}

template <int kEach, class T>
__device__ void backward_across(const SoftmaxArgs<T>& a, const AcrossLines<T, kEach>& lines,
                                const ByBlockAcross<Compute<T>, kEach>& who) {
  using C = Compute<T>;
  kept::RawPiece<T, kEach> dy[kTermsOfThread<kEach>], y[kTermsOfThread<kEach>];
  lines.each([&](int k, int64_t at) {
    dy[k] = kept::load_raw<kEach>(a.dy + at);
    y[k] = kept::load_raw<kEach>(a.x + at);
  });
  Piece<C, kEach> sum{};
  lines.each([&](int k, int64_t) {
    const auto d = dy[k].elements(), v = y[k].elements();
    for (int j = 0; j < kEach; ++j) sum.of[j] += wide(d.of[j]) * (a.is_log ? C(1) : wide(v.of[j]));
  });
  sum = who.all(sum, Sum(), [](C total) { return total; });
  lines.each([&](int k, int64_t at) {
    const auto d = dy[k].elements(), v = y[k].elements();
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) dx.of[j] = rounded<T>(a.backward(wide(d.of[j]), wide(v.of[j]), sum.of[j]));
    store_piece(a.out + at, dx);
  });
}

template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads) softmax_across_kernel(const SoftmaxArgs<T> a) {
  auto& s = shared<AcrossShared<Compute<T>, kEach>>();
  const unsigned columns = 1u << a.log;
  const ByBlockAcross<Compute<T>, kEach> who{s, columns};
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.x} * columns; first * kEach < a.count; first += int64_t{gridDim.x} * columns) {
    const AcrossLines<T, kEach> lines(a, first + (threadIdx.x & (columns - 1)));
    if constexpr (kBackward) {
      backward_across<kEach>(a, lines, who);
    } else {
      forward_across<kEach>(a, lines, who);
    }
  }
}

}  // namespace plumb::cuda::softmaxes
