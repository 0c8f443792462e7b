// Every __global__ function of the sources runs on the emulated device: counted, by name.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "dispatch/gate.h"
#include "kernels/augment.h"
#include "kernels/cuda/emulator/threads.h"
#include "ops/batch_norm.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/pool2d.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "optim/adam.h"
#include "tests/cases/op_case.h"
#include "tests/support/folder.h"

namespace plumb::test {
namespace {

std::set<std::string> functions_of_sources() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_folder() + "/kernels/cuda")) {
    if (!entry.path().extension().string().starts_with(".cu")) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    static const std::regex function(R"(__global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\()");
    for (std::sregex_iterator it(source.begin(), source.end(), function), end; it != end; ++it) names.insert((*it)[1]);
  }
  return names;
}

// All cases once, and what no op does: what is met by gradients of gradients, and an optimizer.
std::set<std::string> functions_that_run() {
  for (const OpCase& c : op_cases()) {
    for (const OpVariant& v : c.variants) {
      for (const Layout layout : layouts_of(v)) {
        const std::vector<Tensor> x = make_inputs(v, DType::kF32, layout);
        const Tensor y = v.run(x);
        if (c.differentiable) grad(y, leaves_of(x), random_tensor(y.spec(), 9), {.allow_unused = true});
      }
    }
  }
  uniform(TensorSpec(Shape{9}), 0, 1, 1);
  const Tensor pixels = zeros(Shape{1, 1, 2, 2}, DType::kU8), windows = zeros(Shape{1, 3}, DType::kI32);
  const Tensor table = zeros(Shape{1, functors::kPixelValues}, DType::kF32), batch = zeros(Shape{1, 1, 2, 2});
  update<Augment>({}, {pixels, windows, table, batch}, Writes{3, 1});
  // More long rows, and more channels of many elements, than a grid has blocks: the loops around barriers go on.
  Tensor rows = random_tensor(TensorSpec(Shape{70, 1025}), 2),
         images = random_tensor(TensorSpec(Shape{2, 70, 23, 25}), 3);
  rows.require_grad(), images.require_grad();
  const Tensor labels = zeros(Shape{70}, DType::kI64), of_channels = ones(Shape{70}, DType::kF32);
  Tensor mean = zeros(Shape{70}, DType::kF32), variance = ones(Shape{70}, DType::kF32);
  const Tensor loss = add(add(sum(softmax(rows)), sum(max(rows, {1}))), cross_entropy(rows, labels));
  grad(loss, {rows});
  argmax(rows, {1});
  grad(sum(batch_norm(images, of_channels, of_channels, mean, variance, {})), {images});
  Tensor w = random_tensor(TensorSpec(Shape{1, 1, 4, 4}), 1);
  w.require_grad();
  const GradOptions again{.create_graph = true};
  const Tensor dw = grad(sum(mul(max_pool2d(w, {}), max_pool2d(w, {}))), {w}, again)[0];
  grad(sum(mul(dw, dw)), {w});
  optim::Adam(std::vector<Tensor>{w}, {}).step(std::vector<Tensor>{w.detached().clone()});
  std::set<std::string> names;
  for (const std::string& f : emulator::functions_run()) names.insert(f.substr(0, f.find('<')));
  return names;
}

TEST(EveryKernelTest, RunsOnTheEmulatedDevice) {
  const std::set<std::string> there = functions_of_sources(), ran = functions_that_run();
  EXPECT_GT(there.size(), 30u);
  for (const std::string& name : there) EXPECT_TRUE(ran.contains(name)) << name << " was never launched";
  for (const std::string& name : ran) EXPECT_TRUE(there.contains(name)) << name << " is not found in the sources";
  std::printf("%zu __global__ functions, %zu instantiations run\n", there.size(), emulator::functions_run().size());
}

}  // namespace
}  // namespace plumb::test
