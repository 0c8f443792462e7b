// The tests of this program work on the first GPU; where there is none, the program says why and ends with status 77.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "core/context.h"
#include "core/error.h"
#include "core/runtime.h"

namespace plumb::test {
namespace {

class OnGpu : public testing::Environment {
 public:
  void SetUp() override {
    try {
      detail::ctx.policy.device = device_from_string("cuda");
    } catch (const Error& e) {
      std::printf("[  SKIPPED ] all tests: %s\n", e.what());
      std::fflush(stdout);
      std::_Exit(77);
    }
  }
};
[[maybe_unused]] const testing::Environment* const on_gpu = testing::AddGlobalTestEnvironment(new OnGpu);

}  // namespace
}  // namespace plumb::test
