#include "kernels/cpu/bf16_rate.h"

#include "kernels/cpu/gemm/amx_block.h"

namespace plumb::cpu {

double multiply_bf16(int64_t rounds) {
  if (has_amx()) {
    constexpr int64_t kDepth = 8 * kAmxDepth;
    alignas(64) float a[kAmxRows * kDepth] = {}, b[kDepth * kBlockColumns] = {}, c[kAmxRows * kBlockColumns];
    for (int64_t i = 0; i < rounds; ++i) multiply_amx_rows(kDepth, a, kDepth, b, c, i == 0);
    return 4.0 * static_cast<double>(rounds * kDepth * kAmxRows * kBlockColumns);
  }
#if defined(__AVX512BF16__)
  constexpr int kChains = 12, kSteps = 256;
  __m512 v[kChains] = {};
  __m512bh x{}, y{};
  asm volatile("" : "+x"(x), "+x"(y));
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
    for (int c = 0; c < kChains; ++c) v[c] = _mm512_dpbf16_ps(v[c], x, y);
  }
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(v[c]));
  return 4.0 * static_cast<double>(rounds * kSteps * kChains * simd::kLanes);
#else
  return 0;
#endif
}

}  // namespace plumb::cpu
