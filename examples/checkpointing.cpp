// Activation checkpointing: a block keeps its inputs alone, and backward computes it again. The gradients are the same
// to the bit, and less memory is taken.
#include <plumbline.h>

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace plumb;

Tensor block(const Tensor& x, const Tensor& w1, const Tensor& w2) {
  return x + conv2d(gelu(conv2d(x, w1, {.padding = 1})), w2, {.padding = 1});
}

struct Step {
  TensorList gradients;
  int64_t peak_bytes;
};

// The gradients of a row of blocks, and the most memory that was in use.
Step step(const Tensor& x, const std::vector<Tensor>& weights, bool with_checkpoints) {
  cpu_memory().reset_peaks();
  Tensor h = x;
  for (size_t i = 0; i < weights.size(); i += 2) {
    h = with_checkpoints ? training::recomputed(block, h, weights[i], weights[i + 1])
                         : block(h, weights[i], weights[i + 1]);
  }
  TensorList gradients = grad(mean(square(h)), weights);
  return {std::move(gradients), cpu_memory().stats().peak_total()};
}

bool is_same(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.data<float>(), b.data<float>()); }

int main() {
  const Tensor x = uniform(Shape{8, 16, 32, 32}, -1, 1, 1);
  std::vector<Tensor> weights;
  for (uint64_t i = 0; i < 12; ++i) weights.push_back(uniform(Shape{16, 16, 3, 3}, -0.1, 0.1, 2 + i).require_grad());

  const Step plain = step(x, weights, false), again = step(x, weights, true);
  const bool agree = std::ranges::equal(plain.gradients, again.gradients, is_same);
  std::printf("gradients %s; at the peak %.1f MB plain, %.1f MB with checkpoints\n",
              agree ? "agree to the bit" : "differ", static_cast<double>(plain.peak_bytes) / 1e6,
              static_cast<double>(again.peak_bytes) / 1e6);
  return agree && again.peak_bytes < plain.peak_bytes ? 0 : 1;
}
