// The tests of this program work on the emulated device, whose memory the host does not reach: what would fail on a GPU
// fails there. Every kernel that is checked runs in each order of its threads,
// and reads and writes nothing beside its buffers, not even what it makes no use of.
#include <gtest/gtest.h>

#include <string_view>

#include "core/context.h"
#include "kernels/cuda/emulator/runtime.h"
#include "kernels/cuda/emulator/threads.h"
#include "tests/support/guarded.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

// But where thousands of differences are taken, by what other tests run as well.
class Hidden : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    emulator::hide_memory(std::string_view(test.name()).find("Differences") == std::string_view::npos);
  }
};

class OnDevice : public testing::Environment {
 public:
  void SetUp() override {
    detail::ctx.policy.device = device_from_string("cuda");
    testing::UnitTest::GetInstance()->listeners().Append(new Hidden);
    emulator::watch_accesses(&Guarded::is_beside_zones);
    using emulator::Order;
    KernelCheck::runs().clear();
    for (const Order order : {Order::kForward, Order::kBackward, Order::kRandom, Order::kGreedy}) {
#ifdef __SANITIZE_ADDRESS__  // sees what is touched, which is the same in every order
      if (order == Order::kBackward || order == Order::kGreedy) continue;
#endif
      KernelCheck::runs().push_back([order] { emulator::set_order(order); });
    }
  }
};
[[maybe_unused]] const testing::Environment* const on_device = testing::AddGlobalTestEnvironment(new OnDevice);

}  // namespace
}  // namespace plumb::test
