#include "app/roofs.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/random.h"
#include "kernels/cpu/parallel.h"
#include "kernels/matmul.h"
#include "kernels/gate.h"
#include "ops/matmul.h"

namespace plumb::app {
namespace {

template <class F>
double best_seconds(int rounds, F&& f) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Independent chains of multiply-adds, enough to hide their latency.
double fma_gflops() {
  constexpr int kChains = 16, kLanes = 16;
  constexpr int64_t kRounds = 4 << 20;
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
  const int team = threads();
  const double seconds = best_seconds(5, [&] {
    cpu::parallel_team(team, [&](int, int) {
      Vector v[kChains];
      for (int c = 0; c < kChains; ++c) v[c] = Vector{} + static_cast<float>(c);
      Vector scale = Vector{} + 0.999f, shift = Vector{} + 0.001f;
      asm volatile("" : "+x"(scale), "+x"(shift));
      for (int64_t i = 0; i < kRounds; ++i) {
        for (int c = 0; c < kChains; ++c) v[c] = v[c] * scale + shift;
      }
      for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(v[c]));
    });
  });
  return 2.0 * kChains * kLanes * static_cast<double>(kRounds) * team / seconds / 1e9;
}

double matmul_gflops() {
  const NoGrad no_grad;
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const Tensor a = uniform(TensorSpec(Shape{n, n}), -1, 1, 1), b = uniform(TensorSpec(Shape{n, n}), -1, 1, 2);
    const double seconds = best_seconds(4, [&] { matmul(a, b); });
    const double cubed = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best, 2 * cubed / seconds / 1e9);
  }
  return best;
}

double copy_gbytes() {
  constexpr int64_t kBytes = int64_t{256} << 20;
  const Tensor from = uniform(TensorSpec(Shape{kBytes / 4}), -1, 1, 1);
  const Tensor to = uniform(TensorSpec(Shape{kBytes / 4}), -1, 1, 2);
  const double seconds = best_seconds(7, [&] {
    cpu::parallel_for(kBytes, 1 << 20, 4096, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to.value->data) + begin, static_cast<const char*>(from.value->data) + begin,
                  static_cast<size_t>(end - begin));
    });
  });
  return 2.0 * static_cast<double>(kBytes) / seconds / 1e9;
}

}  // namespace

Roofs measure_roofs() { return {fma_gflops(), matmul_gflops(), copy_gbytes()}; }

}  // namespace plumb::app
