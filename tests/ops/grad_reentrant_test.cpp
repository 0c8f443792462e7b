// grad inside the closures of another grad, and in several threads.
#include <gtest/gtest.h>

#include <thread>

#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/matmul.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

using test::bitwise_equal;

constexpr int kThreads = 4;

Tensor block(const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)) * x; }

// The same, of which nothing but x and w is kept: backward computes it once more.
Tensor checkpointed(const Tensor& x, const Tensor& w) {
  Tensor y;
  {
    const NoGrad off;
    y = block(x.detached(), w.detached());
  }
  const auto again = [](const Tensor& x_, const Tensor& w_, const Tensor& dy, bool by_x) {
    const EnableGrad on;
    Tensor xd = x_.detached(), wd = w_.detached();
    (by_x ? xd : wd).require_grad();
    return Tensor(grad(block(xd, wd), {by_x ? xd : wd}, dy)[0]);
  };
  return record(y, wrt(x, [=](const Tensor& dy) { return again(x, w, dy, true); }),
                wrt(w, [=](const Tensor& dy) { return again(x, w, dy, false); }));
}

TEST(GradReentrant, ACheckpointedChainHasThePlainGradientsToTheBit) {
  const Tensor x = uniform({8, 8}, -1, 1, 1).require_grad(), w = uniform({8, 8}, -1, 1, 2).require_grad();
  const auto chain = [&](Tensor (*f)(const Tensor&, const Tensor&)) {
    Tensor h = x;
    for (int i = 0; i < 5; ++i) h = f(h, w);
    return grad(sum(square(h)), {x, w});
  };

  const TensorList plain = chain(&block), again = chain(&checkpointed);

  EXPECT_TRUE(bitwise_equal(again[0], plain[0]));
  EXPECT_TRUE(bitwise_equal(again[1], plain[1]));
}

// As the outer call has gathered some of w's gradient when the inner one asks for all of its own.
TEST(GradReentrant, TheInnerCallHasPlacesOfItsOwn) {
  const Tensor w = Tensor::from({3.0f}, {1}).require_grad();
  const Tensor y0 = Tensor::from({0.0f}, {1});
  const Tensor y = record(y0, wrt(w, [w](const Tensor& dy) {
                            const EnableGrad on;
                            return Tensor(grad(w * w * w, {w}, dy)[0]);  // 27 dy
                          }));

  const TensorList g = grad(sum(y + w * w), {w});

  EXPECT_EQ(g[0].item(), 27 + 6);
}

TEST(GradReentrant, ManyNodesHaveAPlaceEach) {
  std::vector<Tensor> xs;
  Tensor total = Tensor::from({0.0f}, {1});
  for (int i = 0; i < 1000; ++i) {
    xs.push_back(Tensor::from({static_cast<float>(i)}, {1}));
    xs.back().require_grad();
    total += square(xs.back());
  }
  const TensorList g = grad(sum(total), xs);
  for (size_t i = 0; i < xs.size(); ++i) ASSERT_EQ(g[i].item(), 2.0 * static_cast<double>(i));
}

TEST(GradReentrant, ThreadsShareLeaves) {
  const Tensor w = uniform({16, 16}, -1, 1, 1).require_grad();
  const auto gradient = [&w](uint64_t seed) {
    return Tensor(grad(sum(block(uniform({16, 16}, -1, 1, seed), w)), {w})[0]);
  };
  std::vector<Tensor> alone, together(kThreads);
  for (uint64_t i = 0; i < kThreads; ++i) alone.push_back(gradient(i));

  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) together[i] = gradient(i);
    });
  }
  for (std::thread& t : threads) t.join();

  for (size_t i = 0; i < kThreads; ++i) EXPECT_TRUE(bitwise_equal(together[i], alone[i])) << i;
}

}  // namespace
}  // namespace plumb
