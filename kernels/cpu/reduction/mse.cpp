#include "kernels/mse.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/reduction/simd_reduce.h"

namespace plumb::cpu {
namespace {

// The sum of the squared differences of n elements. Each operand is read from two places at once, since from few a core
// does not get what memory gives.
template <class T>
double squares(const T* x, const T* y, int64_t n) {
  using C = Compute<T>;
  const auto square = [=](int64_t i) {
    const C difference = load(x + i) - load(y + i);
    return difference * difference;
  };
  const int64_t half = n / 2;
  std::array<double, 2> total{};
  for (int64_t begin = 0; begin < half; begin += kShortSum) {
    SimdSums<C, 2> sums;
    sums.add(std::min(kShortSum, half - begin), [&](int64_t i) {
      return std::array<C, 2>{square(begin + i), square(half + begin + i)};
    });
    sums.move_to(total);
  }
  if (n % 2) total[0] += static_cast<double>(square(n - 1));
  return total[0] + total[1];
}

// In pieces of a fixed size, so that the mean does not depend on the number of threads.
template <class T>
std::unique_ptr<Kernel> mse(int64_t n) {
  constexpr int64_t kPiece = 4 * kShortSum, kGrain = kGrainBytes / (2 * static_cast<int64_t>(sizeof(T)));
  const int64_t pieces = ceil_div(n, kPiece);
  auto kernel = make_kernel("plumb:mse", [=](const Launch& l) {
    const auto *x = static_cast<const T*>(l.in[0]), *y = static_cast<const T*>(l.in[1]);
    auto* const of_pieces = static_cast<double*>(l.workspace);
    parallel_for(pieces, ceil_div(kGrain, kPiece), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const int64_t begin = p * kPiece;
        of_pieces[p] = squares(x + begin, y + begin, std::min(kPiece, n - begin));
      }
    });
    double total = 0;
    for (int64_t p = 0; p < pieces; ++p) total += of_pieces[p];
    *static_cast<Compute<T>*>(l.out[0]) = static_cast<Compute<T>>(total / static_cast<double>(n));
  });
  kernel->info().workspace_bytes = static_cast<size_t>(pieces) * sizeof(double);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> mse_backward(int64_t n) {
  using C = Compute<T>;
  return make_kernel("plumb:mse_backward", [=](const Launch& l) {
    const auto *x = static_cast<const T*>(l.in[1]), *y = static_cast<const T*>(l.in[2]);
    const C scale = *static_cast<const C*>(l.in[0]) * static_cast<C>(2.0 / static_cast<double>(n));
    const Source sources[] = {{x}, {y}};
    parallel_write(static_cast<T*>(l.out[0]), n, sources, [&](int64_t begin, int64_t end, T* to) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) store(to + (i - begin), (load(x + i) - load(y + i)) * scale);
    });
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void MseForward::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  cpu::dispatch_compute(p.in[0].dtype,
                        [&]<class T>() { candidates.add("loop", [n = p.in[0].numel()] { return cpu::mse<T>(n); }); });
}

void MseBackward::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  cpu::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [n = p.in[1].numel()] { return cpu::mse_backward<T>(n); });
  });
}

}  // namespace plumb
