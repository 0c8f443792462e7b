// What the tables of refusals share: a call, as text and as work, and what the sentence must say.
#pragma once

#include <gtest/gtest.h>

#include "ops/batch_norm.h"
#include "ops/dropout.h"
#include "tests/support/compare.h"
#include "tests/support/scripted.h"

namespace plumb::test {

struct Refusal {
  const char* call;
  void (*work)();
  std::vector<std::string> says;
};
/// The first two members of a Refusal.
#define CALL(...) #__VA_ARGS__, [] { static_cast<void>(__VA_ARGS__); }

inline void expect_refused(std::span<const Refusal> table) {
  for (const Refusal& r : table) {
    for (const std::string& part : r.says) EXPECT_TRUE(refused(r.work, part)) << r.call;
  }
}

// Tensors in few words, and calls with few arguments.

inline constexpr auto kF16 = DType::kF16, kF32 = DType::kF32, kF64 = DType::kF64, kBf16 = DType::kBf16,
                      kI32 = DType::kI32, kI64 = DType::kI64, kU8 = DType::kU8;
inline constexpr auto kNchw = Layout::kNchw, kNhwc = Layout::kNhwc, kChwn = Layout::kChwn;

inline Tensor of(const Shape& s, DType t = kF32, Layout l = kNchw) { return small_integers({s, t, l}, 1, 1); }
inline Tensor labels(int64_t n) { return of({n}, kI64); }
/// As if it lived on a GPU.
inline Tensor on_cuda(const Shape& s, DType t = kF32) {
  return Tensor::empty(TensorSpec(s, t), MemoryClass::kInput, test::a_described_device());
}
/// batch_norm with gamma and beta c, and f32 statistics of three channels.
inline Tensor norm(const Tensor& x, const Tensor& c, const BatchNormParams& p = {}) {
  return batch_norm(x, c, c.detached(), of({3}), of({3}), p);
}
inline Tensor dropped(const Tensor& x, double p, const Tensor& state = of({2}, kI64)) {
  Generator generator;
  generator.state = state;
  return dropout(x, p, generator);
}

}  // namespace plumb::test
