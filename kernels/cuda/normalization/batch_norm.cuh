// What batch normalisation sums over each channel, and what follows from the sums.
#pragma once

#include "kernels/cuda/normalization/channel_sums.cuh"

namespace plumb::cuda::norm {

namespace math = functors::math;

// What the pass makes of an element of a channel: (x - centre) slope + shift, + dy scale. One access of memory for f32.
template <class C>
struct alignas(16) Coefficients {
  C centre, slope, shift, scale;
};
template <class C>
__device__ Coefficients<C> coefficients(double centre, double slope, double shift, double scale) {
  return {static_cast<C>(centre), static_cast<C>(slope), static_cast<C>(shift), static_cast<C>(scale)};
}
template <class T>
struct Forward {
  const T* x;
  const Compute<T>*gamma, *beta;
  Compute<T>*running_mean, *running_var, *mean, *inv_std;
  Coefficients<Compute<T>>* k;
  double epsilon, momentum, count;  // of a channel's elements
  int64_t inner;                    // neighbours of one channel
  bool is_unbiased;

  /// What follows from the mean of a channel and the sum of the squares of the deviations from it.
  __device__ void finish(double batch_mean, double m2, int64_t c) const {
    const double var = m2 / count, deviation = 1 / math::sqrt(var + epsilon);
    const auto update = [&](Compute<T>& running, double batch) {
      running = static_cast<Compute<T>>((1 - momentum) * static_cast<double>(running) + momentum * batch);
    };
    update(running_mean[c], batch_mean);
    update(running_var[c], is_unbiased ? m2 / (count - 1) : var);
    const auto rounded_mean = static_cast<Compute<T>>(batch_mean);
    mean[c] = rounded_mean;
    inv_std[c] = static_cast<Compute<T>>(deviation);
    // What the mean loses by rounding goes into the shift: it matters where the mean is large.
    const double slope = deviation * static_cast<double>(gamma[c]);
    const double lost = batch_mean - static_cast<double>(rounded_mean);
    k[c] = coefficients<Compute<T>>(batch_mean, slope, static_cast<double>(beta[c]) - lost * slope, 0);
  }
};

// Mean and variance: sums about a pivot within a chunk, and of two parts by Chan, Golub, LeVeque: Algorithms for
// computing the sample variance, 1983.
template <class T>
struct Moments {
  using Element = T;
  using C = Compute<T>;
  struct State {
    double n = 0, mean = 0, m2 = 0;
  };
  struct Chunk {
    C pivot, sum, square;
  };
  Forward<T> f;

  template <int kEach>
  __device__ Piece<T, kEach> fetch(int64_t at) const {
    return load_piece<kEach>(f.x + at);
  }
  // The first pivot is an element, which may be far out; the others are the mean so far.
  __device__ Chunk begin(const State& s, int64_t at, int64_t) const {
    return {s.n == 0 ? load(f.x + at) : static_cast<C>(s.mean), 0, 0};
  }
  template <class Operands>
  __device__ void add(Chunk& chunk, const Operands& v, int j) const {
    const C d = wide(v.of[j]) - chunk.pivot;
    chunk.sum += d;
    chunk.square += d * d;
  }
  __device__ void end(State& s, const Chunk& chunk, int n) const {
    const double sum = static_cast<double>(chunk.sum), shift = sum / n;
    const double m2 = static_cast<double>(chunk.square) - sum * shift;
    s = merge(s, {static_cast<double>(n), static_cast<double>(chunk.pivot) + shift, m2 < 0 ? 0 : m2});  // keeps NaN
  }
  __device__ State merge(const State& a, const State& b) const {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    const double n = a.n + b.n, delta = b.mean - a.mean, share = b.n / n;
    return {n, a.mean + delta * share, a.m2 + b.m2 + delta * delta * (a.n * share)};
  }
  __device__ State from_lane(const State& s, int distance) const {
    return {__shfl_xor_sync(kAllLanes, s.n, distance), __shfl_xor_sync(kAllLanes, s.mean, distance),
            __shfl_xor_sync(kAllLanes, s.m2, distance)};
  }
  __device__ void finish(const State& s, int64_t c) const { f.finish(s.mean, s.m2, c); }
};

// The same in less time, for what is added up in f32: all sums of a channel become sums about its first element, which
// merge by additions. However far out that is, it is within sqrt(n) standard deviations of the mean, so that of the 53
// bits no more than log2(n) are lost: f32 does not see it, f64 would.
template <class T>
struct MomentsAboutFirst {
  using Element = T;
  using C = Compute<T>;
  struct State {
    double sum = 0, square = 0;
    C n = 0;  // for a pivot alone
  };
  struct Chunk {
    C pivot, sum, square, first;
  };
  Forward<T> f;

  template <int kEach>
  __device__ Piece<T, kEach> fetch(int64_t at) const {
    return load_piece<kEach>(f.x + at);
  }
  __device__ C first_of(int64_t channel) const { return load(f.x + channel * f.inner); }
  __device__ Chunk begin(const State& s, int64_t at, int64_t channel) const {
    const C first = first_of(channel);
    return {s.n == 0 ? load(f.x + at) : first + static_cast<C>(s.sum) / s.n, 0, 0, first};
  }
  template <class Operands>
  __device__ void add(Chunk& chunk, const Operands& v, int j) const {
    const C d = wide(v.of[j]) - chunk.pivot;
    chunk.sum += d;
    chunk.square += d * d;
  }
  __device__ void end(State& s, const Chunk& chunk, int n) const {
    const double d = static_cast<double>(chunk.pivot) - static_cast<double>(chunk.first);
    const double sum = static_cast<double>(chunk.sum), moved = d * n;
    s.sum += sum + moved;
    s.square += static_cast<double>(chunk.square) + d * (2 * sum + moved);
    s.n += static_cast<C>(n);
  }
  __device__ State merge(const State& a, const State& b) const {
    return {a.sum + b.sum, a.square + b.square, a.n + b.n};
  }
  __device__ State from_lane(const State& s, int distance) const {
    return {__shfl_xor_sync(kAllLanes, s.sum, distance), __shfl_xor_sync(kAllLanes, s.square, distance), 0};
  }
  __device__ void finish(const State& s, int64_t c) const {
    const double shift = s.sum / f.count, m2 = s.square - s.sum * shift;
    f.finish(static_cast<double>(first_of(c)) + shift, m2 < 0 ? 0 : m2, c);  // keeps NaN
  }
};
template <class T>
using MomentsOf = std::conditional_t<std::is_same_v<Compute<T>, double>, Moments<T>, MomentsAboutFirst<T>>;

template <class T>
struct Backward {
  const T *dy, *x;
  const Compute<T>*gamma, *mean, *spread, *beta;  // beta where there is a ReLU
  Compute<T>*dgamma, *dbeta;
  Coefficients<Compute<T>>* k;
  double epsilon, count;  // of a channel's elements
  bool is_train;

  __device__ double inv_std(int64_t c) const {
    const auto of_channel = static_cast<double>(spread[c]);
    return is_train ? of_channel : 1 / math::sqrt(of_channel + epsilon);
  }
  /// By which dy is multiplied, and by which forward has multiplied x - mean.
  __device__ double scale(int64_t c) const { return inv_std(c) * static_cast<double>(gamma[c]); }
};

/// What is left of dy behind a ReLU, of which x - mean tells whether it let something through. The sums and the pass
/// over the elements ask with the same numbers.
template <class C>
__device__ C behind_relu(C dy, C deviation, C scale, C beta) {
  return deviation * scale + beta > 0 ? dy : C(0);
}

// The sums of dy and of dy (x - mean), or of what a ReLU leaves of dy.
template <class T, bool kIsRelu>
struct Gradients {
  using Element = T;
  using C = Compute<T>;
  struct State {
    double sum = 0, product = 0;
  };
  struct Plain {
    C mean, sum, product;
  };
  struct BehindRelu {
    C mean, sum, product, scale, beta;
  };
  using Chunk = std::conditional_t<kIsRelu, BehindRelu, Plain>;
  template <int kEach>
  struct Operands {
    Piece<T, kEach> dy, x;
  };
  Backward<T> b;

  template <int kEach>
  __device__ Operands<kEach> fetch(int64_t at) const {
    return {load_piece<kEach>(b.dy + at), load_piece<kEach>(b.x + at)};
  }
  __device__ Chunk begin(const State&, int64_t, int64_t c) const {
    Chunk chunk{};
    chunk.mean = b.mean[c];
    if constexpr (kIsRelu) chunk.scale = static_cast<C>(b.scale(c)), chunk.beta = b.beta[c];
    return chunk;
  }
  template <class Fetched>
  __device__ void add(Chunk& chunk, const Fetched& v, int j) const {
    const C d = wide(v.x.of[j]) - chunk.mean;
    C dy = wide(v.dy.of[j]);
    if constexpr (kIsRelu) dy = behind_relu(dy, d, chunk.scale, chunk.beta);
    chunk.sum += dy;
    chunk.product += dy * d;
  }
  __device__ void end(State& s, const Chunk& chunk, int) const {
    s = merge(s, {static_cast<double>(chunk.sum), static_cast<double>(chunk.product)});
  }
  __device__ State merge(const State& p, const State& q) const { return {p.sum + q.sum, p.product + q.product}; }
  __device__ State from_lane(const State& s, int distance) const {
    return {__shfl_xor_sync(kAllLanes, s.sum, distance), __shfl_xor_sync(kAllLanes, s.product, distance)};
  }
  __device__ void finish(const State& s, int64_t c) const {
    if (b.count == 0) {
      b.dgamma[c] = b.dbeta[c] = 0;
      return;
    }
    const double inv_std = b.inv_std(c), product = s.product * inv_std, scale = b.scale(c);
    b.dgamma[c] = static_cast<C>(product);
    b.dbeta[c] = static_cast<C>(s.sum);
    const double share = scale / b.count;
    b.k[c] = coefficients<C>(static_cast<double>(b.mean[c]), -share * product * inv_std, -share * s.sum, scale);
  }
};

}  // namespace plumb::cuda::norm
