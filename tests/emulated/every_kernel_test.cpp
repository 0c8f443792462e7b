// Every __global__ function of the sources runs on the emulated device: counted, by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "kernels/augment.h"
#include "kernels/cuda/emulator/runtime.h"
#include "kernels/cuda/emulator/threads.h"
#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/index_select.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/permute.h"
#include "ops/pool2d.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "optim/adam.h"
#include "tests/cases/op_case.h"
#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb::test {
namespace {

[[maybe_unused]] std::set<std::string> functions_of_sources() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_folder() + "/kernels/cuda")) {
    if (!entry.path().extension().string().starts_with(".cu")) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    static const std::regex function(R"(__global__ void\s+(?:__launch_bounds__\([^()]+\)\s+)?(\w+)\()");
    for (std::sregex_iterator it(source.begin(), source.end(), function), end; it != end; ++it) names.insert((*it)[1]);
  }
  return names;
}

// What most cases do with a block or two, with `n` times some.
void many_blocks(int64_t n) {
  const auto tensor = [](const Shape& shape, Layout layout = Layout::kNchw) {
    Tensor x = random_tensor(TensorSpec(shape, DType::kF32, layout), 2);
    x.require_grad();
    return x;
  };
  const GradOptions unused{.allow_unused = true};
  const int64_t many = 3000 * n;
  uniform(TensorSpec(Shape{many}), 0, 1, 1);
  const Tensor x = tensor({many});
  x.clone();
  grad(sum(add(mul(x, x), x)), {x});
  const Tensor pixels = zeros(Shape{n, 1, 64, 64}, DType::kU8), windows = zeros(Shape{n, 3}, DType::kI32);
  const Tensor table = zeros(Shape{1, functors::kPixelValues}, DType::kF32), batch = zeros(Shape{n, 1, 64, 64});
  update<Augment>({}, {pixels, windows, table, batch}, Writes{3, 1});
  Tensor w = tensor({20000 * n});
  optim::Adam(std::vector<Tensor>{w}, {}).step(std::vector<Tensor>{w.detached().clone()});
  // Channels: with running statistics, and side by side in parts.
  const auto normalised = [&](const Tensor& images, bool is_training) {
    const Shape channels{images.shape()[1]};
    Tensor mean = zeros(channels, DType::kF32), variance = ones(channels, DType::kF32);
    BatchNormParams p{.train = is_training};
    const Tensor y = batch_norm(images, ones(channels), ones(channels), mean, variance, p);
    p.activation = Activation::kRelu;
    const Tensor z = batch_norm(images, ones(channels), ones(channels), mean, variance, p);
    return batch_norm(add(y, z), ones(channels), ones(channels), mean, variance, p, images);
  };
  const Tensor many_channels = tensor({1, 600 * n, 3, 3});
  const Tensor images = tensor({2, 64 * n, 16, 16}, Layout::kNhwc);
  grad(sum(normalised(images, true)), {images});
  const Tensor runs = tensor({2, 8 * n, 16, 16});
  grad(sum(normalised(runs, true)), {runs});
  for (const char* algorithm : {"whole_channels", "relu_apart"}) {
    const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
    for (const Tensor& in : {images, runs}) grad(sum(normalised(in, true)), {in});
    grad(sum(normalised(many_channels, false)), {many_channels});
  }
  Generator generator(1);
  dropout(images, 0.5, generator);
  dropout(tensor({2, 300 * n, 3, 3}, Layout::kNhwc), 0.5, generator);
  grad(sum(dropout(x, 0.5, generator)), {x});
  // Lines that lie across memory, slices by their numbers, and rows with a mask of their ReLU.
  const Tensor across = tensor({64, 70 * n}), high = tensor({300, 35 * n});
  grad(add(sum(softmax(across, 0)), sum(softmax(high, 0))), {across, high});
  const Tensor rows = tensor({600 * n, 4}), index = zeros(Shape{600 * n}, DType::kI64);
  const Tensor many_rows = tensor({7000 * n, 4});  // whose lists one block can't make
  grad(sum(index_select(rows, 0, index)), {rows});
  grad(sum(index_select(many_rows, 0, index)), {many_rows});
  const Tensor a = tensor({4 * n, 16}), b = tensor({600, 16}), c = tensor({8, 600});
  grad(sum(linear(linear(a, b, {}, Activation::kRelu), c)), {a, b, c}, unused);
  // One long line, and channels in pieces.
  const Tensor line = tensor({20000 * n}), pieces = tensor({2, 3, 24, 24 * n});
  argmax(line, {0});
  grad(add(max(line, {0}), sum(normalised(pieces, true))), {line, pieces});
  matmul(tensor({70 * n, 512}), tensor({512, 100}));         // a sum in parts
  permute(zeros(Shape{66 * n, 130}, DType::kBf16), {1, 0});  // elements of two bytes, by pairs
  permute(zeros(Shape{66 * n, 8, 6, 6}, DType::kBf16), {3, 2, 1, 0});
  // Weights in krsc, in pieces and element by element.
  for (const int64_t channels : {8, 7})
    conv2d(tensor({1, channels, 4, 4}, Layout::kNhwc), tensor({40 * n, channels, 3, 3}), Tensor(), {});
  // Windows in pieces of channels and of rows, of any size, and in cells of any.
  const Tensor channels_last = tensor({4, 16 * n, 16, 16}, Layout::kNhwc), places = tensor({4, 16 * n, 16, 16});
  for (const Pool2dParams& p : {Pool2dParams{}, Pool2dParams{.kernel = 1}, Pool2dParams{.kernel = {1, 2}, .stride = 1},
                                Pool2dParams{.kernel = 3, .stride = 2}})
    for (const Tensor& in : {channels_last, places}) grad(add(sum(max_pool2d(in, p)), sum(avg_pool2d(in, p))), {in});
  const Tensor planes = tensor({1, 8 * n, 16, 16}), y = max_pool2d(planes, {});
  const GradOptions again{.create_graph = true};
  const Tensor dx = grad(sum(mul(y, y)), {planes}, again)[0];
  grad(sum(mul(dx, dx)), {planes});
}

// More long rows, and more channels of many elements, than a grid has blocks: the loops around barriers go on.
void long_rows(int64_t n) {
  Tensor rows = random_tensor(TensorSpec(Shape{35 * n, 1025}), 2),
         images = random_tensor(TensorSpec(Shape{2, 35 * n, 23, 25}), 3);
  rows.require_grad(), images.require_grad();
  const Tensor labels = zeros(Shape{35 * n}, DType::kI64), of_channels = ones(Shape{35 * n}, DType::kF32);
  Tensor mean = zeros(Shape{35 * n}, DType::kF32), variance = ones(Shape{35 * n}, DType::kF32);
  const Tensor loss = add(add(sum(softmax(rows)), sum(max(rows, {1}))), cross_entropy(rows, labels));
  grad(loss, {rows});
  argmax(rows, {1});
  grad(sum(batch_norm(images, of_channels, of_channels, mean, variance, {})), {images});
  Tensor short_rows = random_tensor(TensorSpec(Shape{35 * n, 33}), 2),
         long_rows = random_tensor(TensorSpec(Shape{3 * n, 4097}), 2);  // longer than registers hold
  short_rows.require_grad(), long_rows.require_grad();
  const Tensor few_labels = zeros(Shape{3 * n}, DType::kI64);
  grad(add(add(sum(softmax(long_rows)), sum(layer_norm(long_rows))), cross_entropy(long_rows, few_labels)),
       {long_rows});
  grad(add(sum(softmax(short_rows)), cross_entropy(short_rows, labels)), {short_rows});
  for (const Shape& x : {Shape{512, 256 * n + 16}, Shape{2048, 8 * n}}) sum(random_tensor(TensorSpec(x), 4), {0});
  // The rows of a gradient go two rounds, so that fewer blocks have them.
  Tensor w = random_tensor(TensorSpec(Shape{1025}), 5), narrow = random_tensor(TensorSpec(Shape{100 * n, 33}), 2),
         w_of_narrow = random_tensor(TensorSpec(Shape{33}), 5);
  w.require_grad(), narrow.require_grad(), w_of_narrow.require_grad();
  grad(sum(layer_norm(rows, w)), {rows, w});
  grad(sum(layer_norm(narrow, w_of_narrow)), {narrow, w_of_narrow});
}

// All cases once, and what no op does: what is met by gradients of gradients, and an optimizer.
void all_cases() {
  for (const OpCase& c : op_cases()) {
    for (const OpVariant& v : c.variants) {
      // Larger ones take minutes under ThreadSanitizer; what they alone would launch is launched below.
      if (std::ranges::any_of(v.inputs, [](const CaseInput& i) { return i.spec.numel() > 40000; })) continue;
      for (const Layout layout : layouts_of(v)) {
        const std::vector<Tensor> x = make_inputs(v, DType::kF32, layout);
        const Tensor y = v.run(x);
        if (c.differentiable) grad(y, leaves_of(x), random_tensor(y.spec(), 9), {.allow_unused = true});
      }
    }
  }
  Tensor w = random_tensor(TensorSpec(Shape{1, 1, 4, 4}), 1);
  w.require_grad();
  const GradOptions again{.create_graph = true};
  const Tensor dw = grad(sum(mul(max_pool2d(w, {}), max_pool2d(w, {}))), {w}, again)[0];
  grad(sum(mul(dw, dw)), {w});
  optim::Adam(std::vector<Tensor>{w}, {}).step(std::vector<Tensor>{w.detached().clone()});
  const Tensor logits = random_tensor(TensorSpec(Shape{600, 8}), 1);  // in every row of which something is wrong
  const Tensor loss = cross_entropy(logits, full(Shape{600}, 99, DType::kI64));
  EXPECT_TRUE(refused([&] { loss.item(); }, "is 99; with 8 classes"));
}

// On two devices, of which the larger cuts few long lines into parts.
void all_sizes() {
  static const Device larger = add_device(emulator::make_runtime(16));
  for (const Device device : {detail::ctx.policy.device, larger}) {
    const DeviceScope on(device);
    for (const int64_t n : {1, 2}) many_blocks(n), long_rows(n);
  }
}

// How often each template was launched with another grid of more than one block.
[[maybe_unused]] std::map<std::string, size_t> functions_that_run() {
  all_cases();
  all_sizes();
  std::map<std::string, emulator::Grids> grids;
  for (const auto& [function, of_it] : emulator::functions_run()) {
    auto& all = grids[function.substr(0, function.find('<'))];
    std::ranges::copy_if(of_it, std::inserter(all, all.end()), [](const auto& g) { return g[0] * g[1] * g[2] > 1; });
  }
  std::map<std::string, size_t> found;
  for (const auto& [name, of_it] : grids) found[name] = of_it.size();
  return found;
}

#ifdef __SANITIZE_THREAD__  // which makes minutes of it: two tests, for a processor each, and no counting
TEST(EveryKernelTest, HasNoRaceInTheCases) { all_cases(); }
TEST(EveryKernelTest, HasNoRaceOnManyBlocks) { all_sizes(); }
#else
TEST(EveryKernelTest, RunsOnTheEmulatedDevice) {
  const std::set<std::string> there = functions_of_sources();
  const std::set<std::string> of_one_block = {"count_step_kernel", "cross_entropy_sum_kernel", "dropout_advance_kernel",
                                              "index_lists_kernel"};
  const std::map<std::string, size_t> ran = functions_that_run();
  EXPECT_GT(there.size(), 30u);
  for (const std::string& name : there) {
    ASSERT_TRUE(ran.contains(name)) << name << " was never launched";
    const bool is_one_block = of_one_block.contains(name);
    EXPECT_GE(ran.at(name), is_one_block ? 0u : 2u) << name << " has not run with two grids of more than one block";
  }
  const std::set<std::string> of_tests = {"report_kernel"};  // races_test.cpp's
  for (const auto& [name, _] : ran)
    EXPECT_TRUE(there.contains(name) || of_tests.contains(name)) << name << " is not found in the sources";
  std::printf("%zu __global__ functions, %zu instantiations run\n", there.size(), emulator::functions_run().size());
}
#endif

}  // namespace
}  // namespace plumb::test
