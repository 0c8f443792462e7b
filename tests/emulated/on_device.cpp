// The tests of this program work on the emulated device.
#include <gtest/gtest.h>

#include "core/context.h"

namespace plumb::test {
namespace {

class OnDevice : public testing::Environment {
 public:
  void SetUp() override { detail::ctx.choice.device = device_from_string("cuda"); }
};
[[maybe_unused]] const testing::Environment* const on_device = testing::AddGlobalTestEnvironment(new OnDevice);

}  // namespace
}  // namespace plumb::test
