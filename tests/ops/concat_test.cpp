// concat against plain loops over indices, and its gradients.
#include <cmath>
#include <numeric>
#include <thread>

#include "ops/concat.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "tests/ops/movement.h"

namespace plumb::test {
namespace {

void check_concat(const Shape& shape, int dim, const std::vector<int64_t>& extents, DType dtype, Layout layout) {
  std::vector<Tensor> parts;
  std::vector<std::vector<double>> elements;
  double offset = 0;
  for (const int64_t e : extents) {
    const TensorSpec spec(shape.with(dim, e), dtype, layout);
    std::vector<double> values(static_cast<size_t>(spec.numel()));
    for (double& v : values) v = std::fmod(offset++, 251);
    parts.push_back(from_doubles(values, spec));
    elements.push_back(values);
  }
  const Tensor y = concat(parts, dim - shape.rank());

  ASSERT_EQ(y.spec(),
            TensorSpec(shape.with(dim, std::accumulate(extents.begin(), extents.end(), int64_t{0})), dtype, layout));
  const auto source = [&](Index i) {
    size_t part = 0;
    int64_t& k = i[static_cast<size_t>(dim)];
    while (k >= extents[part]) k -= extents[part++];
    return elements[part][static_cast<size_t>(position(parts[part].shape(), i))];
  };
  EXPECT_EQ(to_doubles(y), expected(y.shape(), source)) << to_string(y.spec()) << " along " << dim;
}

TEST(Concat, AgreesWithLoops) {
  KernelCheck check(1);
  for (const DType dtype : kDTypes) {
    check_concat({1}, 0, {3, 0, 17, 31}, dtype, Layout::kNchw);
    for (int dim = 0; dim < 3; ++dim) check_concat({5, 33, 3}, dim, {1, 17, 2}, dtype, Layout::kNchw);
    for (int dim = 0; dim < 6; ++dim) check_concat({2, 1, 3, 2, 2, 3}, dim, {2, 3}, dtype, Layout::kNchw);
  }
  for (const Layout layout : kPublicLayouts) {
    for (int dim = 0; dim < 4; ++dim) {
      check_concat({3, 17, 5, 7}, dim, {1, 31, 3, 0, 33}, DType::kF32, layout);
      check_concat({3, 17, 5, 7}, dim, {0, 0}, DType::kF32, layout);
    }
  }
}

TEST(Concat, AgreesWithLoopsOnLargeTensors) {
  const int64_t n = pieces_past_caches((40 + 9 + 30) * 71 * 34 * 4);
  check_concat({n, 3, 71, 34}, 1, {40, 9, 30}, DType::kF32, Layout::kNchw);
  check_concat({n, 3, 71, 34}, 1, {40, 9, 30}, DType::kF32, Layout::kNhwc);
  check_concat({3, n, 71, 34}, 0, {40, 9, 30}, DType::kF32, Layout::kChwn);
}

TEST(Concat, OfOneTensorIsTheTensor) {
  const Tensor x = numbered({Shape{3, 4}, DType::kF32});
  EXPECT_EQ(concat({x}, 1).value.get(), x.value.get());
}

Tensor leaf(const TensorSpec& spec, uint64_t seed) { return random_tensor(spec, seed).require_grad(); }

TEST(Concat, GradientsAreSlicesForThoseThatNeedOne) {
  const TensorSpec spec(Shape{2, 3}, DType::kF32);
  const Tensor a = leaf(spec, 1), b = random_tensor(spec, 2), c = leaf(spec, 3);
  const Tensor y = concat({a, b, c, a}, 1);
  const Tensor dy = numbered(y.spec());

  const TensorList g = grad(y, {a, c}, dy, {.retain_graph = true});
  EXPECT_TRUE(equal(g[0], slice(dy, {0, 0}, {2, 3}) + slice(dy, {0, 9}, {2, 3})));
  EXPECT_TRUE(equal(g[1], slice(dy, {0, 6}, {2, 3})));

  for (int i = 0; i < 2; ++i) EXPECT_TRUE(equal(grad(y, {a}, dy)[0], g[0]));  // nothing was kept that is released
  EXPECT_FALSE(concat({b, b}, 0).requires_grad());
  const NoGrad off;
  EXPECT_FALSE(concat({a, a}, 0).requires_grad());
}

// An input that a thread recorded whose numbers run ahead gets both of its gradients before it passes them on.
TEST(Concat, OfATensorFromAnotherThread) {
  const Tensor x = leaf({Shape{2}}, 1), b = leaf({Shape{2}}, 2);
  Tensor a;
  std::thread([&] {
    for (int i = 0; i < 1000; ++i) a = x * 2.0;
  }).join();
  const Tensor both = concat({a, b}, 0);  // before the next line brings this thread's numbers level
  const Tensor alone = sum(a);
  const Tensor dx = grad(sum(both) + alone, {x})[0];
  EXPECT_EQ(dx.data<float>()[0], 4);
  EXPECT_EQ(dx.data<float>()[1], 4);
}

TEST(Concat, OfManyTensorsIsOneKernel) {
  std::vector<Tensor> parts;
  for (uint64_t i = 0; i < 40; ++i) parts.push_back(leaf({Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc}, i));
  KernelLog log;
  const Tensor y = concat(parts, 1);
  EXPECT_EQ(log.ran.size(), 1u);
  const TensorList g = grad(y, parts, y.detached());
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(bitwise_equal(g[i], parts[i].detached())) << i;
}

}  // namespace
}  // namespace plumb::test
