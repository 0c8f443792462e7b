// What a call costs on the host in libtorch's C++: the rows of plumb_bench_overhead. Built and run by overhead.sh.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace {

// Nanoseconds a call: the median of blocks, after a warm-up.
template <class F>
double ns_per_call(double block_seconds, F f) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 200; ++i) f();
  int64_t calls = 1;
  const auto seconds = [&] {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) f();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  while (seconds() < block_seconds) calls *= 2;
  std::vector<double> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(seconds() / static_cast<double>(calls) * 1e9);
  std::nth_element(blocks.begin(), blocks.begin() + 4, blocks.end());
  return blocks[4];
}

void print(const std::string& row, double ns) { std::printf("%s %.2f\n", row.c_str(), ns); }

template <class Op>
void print_op(const std::string& op, const std::string& problem, const torch::Tensor& x, Op f) {
  const std::string prefix = op + "/forward/cpu/nchw/f32/";
  {
    const c10::InferenceMode inference;
    const torch::Tensor plain = x.clone();
    print(prefix + "eager/" + problem, ns_per_call(0.02, [&] { f(plain); }));
  }
  const torch::Tensor needs = x.clone().requires_grad_();
  print(prefix + "tape/" + problem, ns_per_call(0.02, [&] { f(needs); }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) at::set_num_threads(std::stoi(argv[1]));
  at::globalContext().setFlushDenormal(true);
  torch::manual_seed(0);
  const torch::Tensor a = torch::rand({1}), b = torch::rand({1});
  print_op("add", "1", a, [&](const torch::Tensor& x) { return x + b; });

  const torch::Tensor ga = a.clone().requires_grad_(), gb = b.clone().requires_grad_();
  print("mul/gradient/cpu/nchw/f32/tape/1", ns_per_call(0.02, [&] { torch::autograd::grad({ga * gb}, {ga, gb}); }));

  const torch::Tensor image = torch::rand({1, 16, 8, 8}), filter = torch::rand({16, 16, 3, 3});
  print_op("conv2d", "1x16x8x8", image, [&](const torch::Tensor& x) { return torch::conv2d(x, filter, {}, 1, 1); });

  const torch::Tensor rows = torch::rand({8, 64}), weight = torch::rand({64, 64}), bias = torch::rand({64});
  print_op("linear", "8x64x64", rows, [&](const torch::Tensor& x) { return torch::linear(x, weight, bias); });
  return 0;
}
