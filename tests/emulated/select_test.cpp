// Candidates of a device are measured there, by its clock, and remembered in a file that is named by it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dispatch/described.h"
#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "dispatch/tuning_cache.h"
#include "kernels/cuda/launch.h"
#include "ops/fill.h"
#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

struct NumberArgs {
  const float* x;
  float* y;
  float value;
  int64_t turns;
};
__global__ void number_kernel(const NumberArgs a) {
  volatile float read = 0;
  for (int64_t i = 0; i < a.turns; ++i) read = a.x[i % 8];
  a.y[0] = a.value + 0 * read;
}

// y from {x}: the number of the candidate.
struct Numbered {
  static constexpr char kName[] = "numbered";
  using Params = NoParams;
  static void cuda(const Problem<Params>& p, Candidates& candidates) {
    const auto offer = [&](const char* name, float value, int64_t turns) {
      candidates.add(name, [=, device = p.device] {
        return cuda::own("test:numbered", device, 1, [=](const cuda::Queue& q, const Launch& l) {
          const NumberArgs args{static_cast<const float*>(l.in[0]), static_cast<float*>(l.out[0]), value, turns};
          q.launch<number_kernel>(cuda::Grid{{1}, {1}}, args);
        });
      });
    };
    offer("slow", 1, 1000000);
    offer("fast", 2, 1);
    offer("slower", 3, 2000000);
  }
};

template <class Kind>
double number(Policy policy) {
  policy.device = kDevice;
  const PolicyScope scope(policy);
  const DeviceScope on(kDevice);
  const Tensor x = zeros(TensorSpec(Shape{8}));
  return run<Kind>({}, {x}, TensorSpec(Shape{1})).item();
}

// Of which three compile, each once, as plans of cuDNN's do; one of these cannot.
struct Compiled {
  static constexpr char kName[] = "compiled";
  using Params = NoParams;
  static inline std::array<std::atomic<int>, 4> made;
  static void cuda(const Problem<Params>& p, Candidates& candidates) {
    for (size_t i = 0; i < made.size(); ++i) {
      const auto make = [i, device = p.device]() -> std::unique_ptr<Kernel> {
        if (++made[i] > 1 || i == 2) return nullptr;
        return cuda::own("test:compiled", device, 1, [i](const cuda::Queue& q, const Launch& l) {
          const NumberArgs args{static_cast<const float*>(l.in[0]), static_cast<float*>(l.out[0]),
                                static_cast<float>(i), i == 3 ? 1 : 1000000};
          q.launch<number_kernel>(cuda::Grid{{1}, {1}}, args);
        });
      };
      candidates.add(Provider::kPlumbline, "number_" + std::to_string(i), make, true, i > 0);
    }
  }
};

TEST(ChoicesOfDevices, AreMadeByItsClock) {
  EXPECT_EQ(number<Numbered>({.search = Search::kHeuristic}), 1);
  EXPECT_EQ(number<Numbered>({.search = Search::kMeasured}), 2);
}

// As a plan does that reads where no memory is: the process that measured it has no device from then on.
TEST(ChoicesOfDevices, WhatTookTheDeviceAlongIsNotTakenAgain) {
  std::string work;
  {
    const DeviceScope on(kDevice);
    const TensorSpec x(Shape{8}), y(Shape{1});
    work = detail::work_of(*prepare<Numbered>({}, {x}, {y}));
  }
  detail::keep_tuned(kDevice, work + " takes the device along by slow", "lost");
  EXPECT_EQ(number<Numbered>({.search = Search::kDeterministic}), 2);
  EXPECT_EQ(number<Numbered>({.search = Search::kHeuristic, .algorithm = algorithm_id("slow")}), 1)
      << "by its whole name it is";
}

TEST(ChoicesOfDevices, WhatCompilesIsMadeOnceAndCompetes) {
  EXPECT_EQ(number<Compiled>({.search = Search::kMeasured}), 3);
  const std::array<int, 4> made{Compiled::made[0], Compiled::made[1], Compiled::made[2], Compiled::made[3]};
  EXPECT_EQ(made, (std::array<int, 4>{1, 1, 1, 1}));
}

TEST(ChoicesOfDevices, DISABLED_Child) {
  std::_Exit(static_cast<int>(number<Numbered>({.search = Search::kMeasured})));
}

TEST(ChoicesOfDevices, AreKeptInAFileOfItsName) {
  namespace fs = std::filesystem;
  const test::Folder folder;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const int status = std::system(("PLUMB_CACHE='" + folder.path().string() + "' '" + self +
                                  "' --gtest_also_run_disabled_tests --gtest_filter=ChoicesOfDevices.DISABLED_Child")
                                     .c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2);
  std::string name, title, line;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    name = entry.path().filename().string();
    std::ifstream in(entry.path());
    std::getline(in, title);
    std::getline(in, line);
  }
  EXPECT_TRUE(name.starts_with("measured-emulated-sm90-")) << name;
  EXPECT_TRUE(title.starts_with("plumbline measured on emulated-sm90-")) << title;
  EXPECT_TRUE(line.starts_with("numbered") && line.ends_with("\tfast")) << line;
}

}  // namespace
}  // namespace plumb
