// Candidates that cannot be made, or may not be taken.
#include <gtest/gtest.h>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

using test::refused;

const TensorSpec kOne(Shape{1});

std::unique_ptr<Kernel> does_nothing() {
  return make_kernel("test:function", [](const Launch&) {});
}

struct OnlyRandom {
  static constexpr char kName[] = "only_random";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>&, Candidates& c) { c.add("random", does_nothing, false); }
};
struct Nothing {
  static constexpr char kName[] = "nothing";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>&, Candidates& c) {
    c.add("never", [] { return nullptr; });
  }
};
// One whose making fails, beside one that can be made, or alone.
struct Failing {
  static constexpr char kName[] = "failing";
  struct Params {
    int64_t has_other = 0;
  };
  static void cpu(const Problem<Params>& p, Candidates& c) {
    c.add("broken", []() -> std::unique_ptr<Kernel> { fail("broken: it cannot be built"); });
    if (p.params.has_other) c.add("whole", does_nothing);
  }
};

TEST(CannotBeMade, MeasuringGoesOnWithoutWhatCannotBeMade) {
  const PolicyScope measured({.search = Search::kMeasured});
  EXPECT_EQ(prepare<Failing>({1}, {}, {kOne})->kernel->info().algorithm, "whole");
  EXPECT_TRUE(refused([] { prepare<Failing>({0}, {}, {kOne}); }, "broken: it cannot be built"));
}

TEST(CannotBeMade, NamesTheWayOutWhereNothingIsDeterministic) {
  const PolicyScope deterministic({.search = Search::kDeterministic});
  EXPECT_TRUE(refused([] { prepare<OnlyRandom>({}, {}, {kOne}); },
                      "only_random: no deterministic kernel on cpu takes this problem; without Search::kDeterministic "
                      "random does"));
  EXPECT_TRUE(refused([] { prepare<Nothing>({}, {}, {kOne}); }, "nothing: no kernel on cpu takes this problem"));
}

}  // namespace
}  // namespace plumb
