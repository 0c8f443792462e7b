// What kernels move by their code, counted on the emulated device, beside what they must: every operand once; and how
// many bytes at a time. Where it is more, or fewer at a time, the caches of a GPU have to serve the rest, and the
// reason stands here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "dispatch/policy.h"
#include "kernels/cuda/emulator/threads.h"
#include "ops/batch_norm.h"
#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/index_select.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/permute.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "optim/adam.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

constexpr Device kEmulated{DeviceType::kCuda, 0};

// Times as many bytes as must be moved, at most, by what was launched. All others: once.
struct Expected {
  const char* kernel;
  double times;
  const char* why;
};
constexpr char kBroadcast[] = "a broadcast operand is read again for every element, of the caches";
constexpr char kWindows[] = "windows overlap: neighbours' come from the caches";
constexpr char kTiles[] = "a tile of one operand meets all tiles of the other";
constexpr char kTwice[] = "a first pass takes statistics, which the second needs";
const std::vector<Expected> kMore = {
    {"add:loop", 1.5, kBroadcast},
    {"expand:loop", 1.25, "what is repeated is read again for every piece of the result, of the caches"},
    {"index_select:loop", 1.25, "the number of a slice is read for each of its pieces"},
    {"avg_pool2d_forward:pieces", 4.34, kWindows},
    {"avg_pool2d_backward:loop", 4.5, kWindows},
    {"max_pool2d_forward:pieces", 4, kWindows},
    {"max_pool2d_backward:loop", 1.8, kWindows},
    {"dropout_forward:philox", 1.03, "all threads read the seed and where it goes on, of the caches"},
    {"cross_entropy_backward:loop", 1.08, "those who share a row all read its label and statistics, of the caches"},
    {"max_backward:rows", 2, "how many are the largest, and then their shares"},
    {"batch_norm_forward:loop", 1.62, kTwice},
    {"batch_norm_backward:loop", 1.7, kTwice},
    {"layer_norm_forward:rows", 1.98, "w and b are read for every row, of the caches"},
    {"layer_norm_backward:one_pass", 2.41,
     "sums of a row and dx, from the caches; and of few rows, parts of dw and db"},
    {"layer_norm_backward:rows", 1.69, "sums of a row and dx: it stays in the caches meanwhile"},
    {"conv2d_forward:direct", 9, kTiles},
    {"conv2d_forward:direct_krsc", 9, kTiles},
    {"conv2d_backward_input:direct", 8.6, kTiles},
    {"conv2d_backward_input:direct_krsc", 8.6, kTiles},
    {"conv2d_backward_weight:direct", 8.2, kTiles},
    {"conv2d_forward:depthwise", 3.59, kWindows},
    {"conv2d_backward_input:depthwise", 3.59, kWindows},
    {"conv2d_backward_weight:depthwise", 3.23, kWindows},
    {"linear_forward:gemm", 1.32, kTiles},
    {"linear_backward_input:gemm", 3.6, kTiles},
    {"linear_backward_weight:gemm", 2.2, kTiles},
};

// Bytes at a time, at least, of two-byte elements whose planes have no whole pieces of eight. All others: six, which is
// pieces of four beside single numbers.
struct Together {
  const char* kernel;
  double bytes;
  const char* why;
};
constexpr char kEndsAnywhere[] = "rows are read from where they begin, an element at a time, and written by pieces";
const std::vector<Together> kFewer = {
    {"permute:transpose", 4, "two elements of a row: a tile is turned by pairs"},
    {"pad:loop", 3.5, kEndsAnywhere},
    {"slice:loop", 3.5, kEndsAnywhere},
};

class Traffic {
 public:
  Traffic() : watch_([this](const PreparedKernel& p, const Launch&) { note(p); }) {
    accesses = 0;
    emulator::watch_accesses(&count);
    last_ = now();
  }
  ~Traffic() { emulator::watch_accesses(nullptr); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  /// As many bytes as a kernel must move, at most, and how many at a time, at least.
  const std::map<std::string, double>& times() const { return times_; }
  const std::map<std::string, double>& together() const { return together_; }

 private:
  static inline int64_t accesses = 0;
  static bool count(const void*, size_t) { return ++accesses > 0; }
  static int64_t now() { return emulator::counts().read + emulator::counts().written; }
  void note(const PreparedKernel& p) {
    const auto moved = static_cast<double>(now() - last_), in = static_cast<double>(accesses);
    const KernelInfo& info = p.kernel->info();
    last_ = now();
    accesses = 0;
    if (info.bytes <= 0 || p.policy.device.is_cpu()) return;
    const std::string name = std::string(p.kind->name) + ":" + info.algorithm;
    times_[name] = std::max(times_[name], moved / info.bytes);
    constexpr double kTensor = 1024;  // bytes: not a number or two
    if (moved < kTensor) return;
    const auto [at, is_first] = together_.emplace(name, moved / in);
    if (!is_first) at->second = std::min(at->second, moved / in);
  }
  test::AfterEveryKernel watch_;
  std::map<std::string, double> times_, together_;
  int64_t last_ = 0;
};

TEST(TrafficTest, WhatIsMovedMoreThanOnceHasAReason) {
  const DeviceScope on(kEmulated);
  Traffic traffic;
  const auto tensor = [](Shape shape, Layout layout = Layout::kNchw) {
    Tensor x = test::random_tensor(TensorSpec(shape, DType::kF32, layout), 1);
    x.require_grad();
    return x;
  };
  const auto back = [](const Tensor& y, TensorList leaves) { grad(sum(y), leaves); };

  Generator generator(1);
  const Tensor a = tensor({64, 1000}), b = tensor({64, 1000}), row = tensor({1000}), wide = tensor({8, 4096});
  back(relu(add(mul(a, b), row)), {a, b, row});
  back(softmax(a), {a});
  back(softmax(wide), {wide});
  const Tensor weights = tensor({1000}), wide_weights = tensor({4096});
  back(layer_norm(a), {a});
  back(layer_norm(a, weights, row), {a, weights, row});
  back(layer_norm(wide, wide_weights, wide_weights), {wide, wide_weights});
  back(log_softmax(permute(a, {1, 0}), 0), {a});
  const Tensor labels = to(full(Shape{64}, 3, DType::kI64), kEmulated);
  back(cross_entropy(a, labels), {a});
  back(max(a, {1}), {a});
  argmax(a, {1});
  mean(a, {0});
  to(a, DType::kBf16);
  back(slice(a, {1, 2}, {60, 900}), {a});
  back(pad(a, {1, 2}, {66, 1004}), {a});
  back(concat({a, b}, 1), {a, b});
  back(index_select(a, 0, labels), {a});
  back(dropout(a, 0.5, generator), {a});
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    const Tensor x = tensor({8, 32, 16, 16}, layout), w = tensor({32, 32, 3, 3}), of_channels = tensor({32});
    back(max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}}), {x});
    back(max_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}}), {x});
    back(avg_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}}), {x});
    back(avg_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}}), {x});
    Tensor running_mean = zeros(Shape{32}, DType::kF32), running_var = ones(Shape{32}, DType::kF32);
    back(batch_norm(x, of_channels, of_channels, running_mean, running_var, {}), {x});
    back(conv2d(x, w, {.padding = {1, 1}}), {x, w});
    back(conv2d(x, w, of_channels, {.padding = {1, 1}, .activation = Activation::kRelu}), {x, w, of_channels});
    const Tensor of_windows = tensor({32, 1, 3, 3});
    back(conv2d(x, of_windows, {.padding = {1, 1}, .groups = 32}), {x, of_windows});
    to(x, layout == Layout::kNchw ? Layout::kNhwc : Layout::kNchw);
  }
  const Tensor w = tensor({512, 1000});
  back(linear(a, w), {a, w});
  optim::Adam(std::vector<Tensor>{w}, {}).step(std::vector<Tensor>{w.detached().clone()});

  for (const auto& [kernel, times] : traffic.times()) {
    const auto known = std::ranges::find_if(kMore, [&, name = kernel](const Expected& e) { return name == e.kernel; });
    const bool is_more = known != kMore.end();
    const double most = is_more ? known->times : 1;
    std::printf("%-40s %6.2f times what it must move%s%s\n", kernel.c_str(), times, is_more ? ": " : "",
                is_more ? known->why : "");
    EXPECT_LE(times, most * 1.02) << kernel;
  }
  for (const Expected& e : kMore) {
    ASSERT_TRUE(traffic.times().contains(e.kernel)) << e.kernel << " has not run";
    EXPECT_GT(traffic.times().at(e.kernel), e.times * 0.8) << e.kernel << " moves less than it did";
  }
}

// On an H200, kernels that took such elements one by one were half as fast as memory.
TEST(TrafficTest, ElementsOfTwoBytesMoveSeveralAtATime) {
  const DeviceScope on(kEmulated);
  Traffic traffic;
  Generator generator(1);
  for (const Shape& shape : {Shape{2, 16, 30, 30}, Shape{6, 64, 6, 6}}) {
    Tensor x = test::random_tensor(TensorSpec(shape, DType::kBf16), 1);
    x.require_grad();
    const auto back = [&](const Tensor& y) { grad(sum(y), {x}); };
    const Shape channels{shape[1]};
    Tensor mean = zeros(channels, DType::kF32), variance = ones(channels, DType::kF32);
    const Tensor scale = ones(channels, DType::kF32);
    back(relu(add(x, x)));
    back(softmax(x, 1));
    back(batch_norm(x, scale, scale, mean, variance, {}));
    back(dropout(x, 0.5, generator));
    back(concat({x, x}, 1));
    sum(x, {0, 2, 3});
    argmax(x, {1});
    const Tensor inner = x.detached();
    pad(inner, {0, 0, 1, 1}, {shape[0], shape[1], shape[2] + 2, shape[3] + 2});
    slice(inner, {0, 0, 1, 1}, {shape[0], shape[1], shape[2] - 2, shape[3] - 2});
    permute(inner, {3, 2, 1, 0});
    to(inner, Layout::kNhwc);
  }
  for (const auto& [kernel, bytes] : traffic.together()) {
    const auto known = std::ranges::find_if(kFewer, [&, name = kernel](const Together& e) { return name == e.kernel; });
    const bool is_fewer = known != kFewer.end();
    std::printf("%-40s %6.2f bytes at a time%s%s\n", kernel.c_str(), bytes, is_fewer ? ": " : "",
                is_fewer ? known->why : "");
    EXPECT_GE(bytes, is_fewer ? known->bytes : 6) << kernel;
  }
  for (const Together& e : kFewer) EXPECT_TRUE(traffic.together().contains(e.kernel)) << e.kernel << " has not run";
}

}  // namespace
}  // namespace plumb
