#include "train/fastest_layout.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "ops/linear.h"
#include "ops/reduce.h"

namespace plumb::training {
namespace {

// A network of one linear layer that is slow in all layouts but one, and counts its forward passes.
class SlowOutside : public models::Network {
 public:
  SlowOutside(std::string name, Layout fast, int64_t channels = 3)
      : Network(std::move(name), Shape{channels, 4, 4}, 2), fast_(fast) {
    models::ParameterMaker made;
    w_ = made.weight("weight", Shape{2, channels}, channels, 2);
    finish(std::move(made));
  }
  Tensor forward(const Tensor& x, const models::ForwardContext&) const override {
    ++passes[x.layout()];
    if (x.layout() != fast_) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return linear(mean(x, {2, 3}), w_);
  }
  mutable std::map<Layout, int> passes;

 private:
  Layout fast_;
  Tensor w_;
};

TEST(FastestLayoutTest, IsTheOneThatTookLeast) {
  for (const Layout fast : kPublicLayouts) {
    const SlowOutside network("fast in " + to_string(fast), fast);
    EXPECT_EQ(fastest_layout(network, DType::kF32, 8), fast);
    EXPECT_EQ(network.passes.size(), 3u);
  }
}

// As by want of memory, which one layout's kernels may need more of.
class FailsInNchw : public SlowOutside {
 public:
  using SlowOutside::SlowOutside;
  Tensor forward(const Tensor& x, const models::ForwardContext& c) const override {
    Tensor y = SlowOutside::forward(x, c);
    PLUMB_CHECK(x.layout() != Layout::kNchw, "out of memory");
    return y;
  }
};

TEST(FastestLayoutTest, IsAmongThoseThatDoNotFail) {
  const FailsInNchw network("fails in one", Layout::kChwn);
  EXPECT_EQ(fastest_layout(network, DType::kF32, 8), Layout::kChwn);
  EXPECT_EQ(network.passes[Layout::kNchw], 1);
  fastest_layout(network, DType::kF32, 8);
  EXPECT_EQ(network.passes[Layout::kNchw], 2) << "another time there may be the memory";
}

TEST(FastestLayoutTest, LooksOnlyOnceAtWhatIsFarBehind) {
  const SlowOutside network("far behind", Layout::kNhwc);
  fastest_layout(network, DType::kF32, 8);
  EXPECT_EQ(network.passes[Layout::kNhwc], 4) << "one that prepares, and three";
  EXPECT_EQ(network.passes[Layout::kNchw], 2);
  EXPECT_EQ(network.passes[Layout::kChwn], 2);
}

TEST(FastestLayoutTest, IsMeasuredOnceForABatchAndASetOfKernels) {
  const SlowOutside network("measured once", Layout::kChwn);
  fastest_layout(network, DType::kF32, 8);
  const auto passes = network.passes;

  EXPECT_EQ(fastest_layout(network, DType::kF32, 8), Layout::kChwn);
  EXPECT_EQ(network.passes, passes);
  fastest_layout(network, DType::kF32, 9);
  EXPECT_NE(network.passes, passes);
  const auto before = network.passes;
  const PolicyScope vendor({.kernels = KernelSet::kVendor});
  fastest_layout(network, DType::kF32, 8);
  EXPECT_NE(network.passes, before);
}

TEST(FastestLayoutTest, IsANetworksAndNotANames) {
  const SlowOutside one("of one name", Layout::kNhwc), other("of one name", Layout::kChwn, 5);
  EXPECT_EQ(fastest_layout(one, DType::kF32, 8), Layout::kNhwc);
  EXPECT_EQ(fastest_layout(other, DType::kF32, 8), Layout::kChwn);
  const auto passes = one.passes;
  set_workspace_limit(1 << 30);
  fastest_layout(one, DType::kF32, 8);
  set_workspace_limit(std::numeric_limits<size_t>::max());
  EXPECT_NE(one.passes, passes) << "with other kernels to choose from";
}

}  // namespace
}  // namespace plumb::training
