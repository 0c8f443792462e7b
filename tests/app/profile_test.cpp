// The trace of every kernel, as far as it goes.
#include "train/profile.h"

#include <gtest/gtest.h>

#include "app/train_report.h"
#include "ops/elementwise.h"
#include "tests/support/folder.h"
#include "tests/support/json.h"

namespace plumb::app {
namespace {

// What three kernels leave in a trace of at most so many, and what is said of it.
struct Trace {
  std::string file, said;
  size_t kernels = 0;
};

Trace trace_of_three_kernels(size_t most) {
  const test::Folder folder;
  Trace t{(folder.path() / "trace.json").string(), "", 0};
  const Tensor x = Tensor::from({1.f, 4.f}, Shape{2});
  training::Profile profile(most);
  {
    const ObserverScope watch(&profile);
    for (int i = 0; i < 3; ++i) sqrt(x);
  }
  testing::internal::CaptureStderr();
  write_profile(profile, t.file);
  t.said = testing::internal::GetCapturedStderr();
  const auto trace = test::parse_json(test::content(t.file));
  for (const auto& e : trace["traceEvents"]) t.kernels += e.value("cat", "") == "forward";
  return t;
}

TEST(ProfileTest, SaysHowManyKernelsItLeavesOut) {
  const Trace t = trace_of_three_kernels(2);
  EXPECT_EQ(t.kernels, 2u);
  EXPECT_EQ(t.said,
            "plumb: " + t.file + " has the first 2 kernels and leaves out 1; train on fewer images to see all\n");
}

TEST(ProfileTest, SaysNothingOfAWholeTrace) {
  const Trace t = trace_of_three_kernels(3);
  EXPECT_EQ(t.kernels, 3u);
  EXPECT_EQ(t.said, "");
}

}  // namespace
}  // namespace plumb::app
