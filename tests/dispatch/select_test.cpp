#include "dispatch/policy.h"
#include "dispatch/tuning_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <thread>

#include "dispatch/gate.h"
#include "dispatch/machine.h"
#include "ops/elementwise.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

using test::refused;

std::unique_ptr<Kernel> writes(float value, int microseconds = 0) {
  return make_kernel("test:function", [=](const Launch& l) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    static_cast<float*>(l.out[0])[0] = value;
  });
}

// Candidates that write their number: one that declines, a slow one, a random one, the fast one, and the reference.
struct Several {
  static constexpr char kName[] = "several";
  struct Params {
    int64_t key = 0;
  };
  static void cpu(const Problem<Params>&, Candidates& c) {
    c.add("never", [] { return nullptr; });
    c.add(
        "random", [] { return writes(1, 3000); }, false);
    c.add("slow_a", [] { return writes(2, 3000); });
    c.add("fast", [] { return writes(3); });
    c.add("slow_b", [] { return writes(4, 3000); });
  }
  static void reference(const Problem<Params>&, Candidates& c) {
    c.add(Provider::kReference, "reference", [] { return writes(5); });
  }
  static double flops(const Problem<Params>&) { return 42; }
};
struct OnlyRandom {
  static constexpr char kName[] = "only_random";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>&, Candidates& c) {
    c.add(
        "random", [] { return writes(1); }, false);
  }
};
struct Nothing {
  static constexpr char kName[] = "nothing";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>&, Candidates& c) {
    c.add("never", [] { return nullptr; });
  }
};

const TensorSpec kOne(Shape{1});
std::string chosen(Policy policy, int64_t key) {
  const PolicyScope scope(policy);
  const detail::Ref<PreparedKernel> p = prepare<Several>({key}, {}, {kOne});
  const std::string name = p->kernel->info().algorithm;
  EXPECT_EQ(p->kernel->info().flops, 42);
  // What is named is what runs.
  const std::map<std::string, float> numbers = {
      {"random", 1}, {"slow_a", 2}, {"fast", 3}, {"slow_b", 4}, {"reference", 5}};
  EXPECT_EQ(run<Several>({key}, {}, kOne).item(), numbers.at(name));
  return name;
}

TEST(Select, TheFirstThatDoesNotDeclineAndHasTheSameBitsFromRunToRun) {
  EXPECT_EQ(chosen({}, 0), "slow_a");
  EXPECT_EQ(prepare<Several>({0}, {}, {kOne})->kernel->info().passed_over, "random");
}

TEST(Select, TakesWhatChangesFromRunToRunWhereThereIsNothingElse) {
  EXPECT_EQ(prepare<OnlyRandom>({}, {}, {kOne})->kernel->info().algorithm, "random");
  const PolicyScope measured({.search = Search::kMeasured});
  EXPECT_EQ(prepare<OnlyRandom>({}, {}, {kOne})->kernel->info().algorithm, "random");
}

TEST(Select, DeterministicSkipsTheOthers) { EXPECT_EQ(chosen({.search = Search::kDeterministic}, 0), "slow_a"); }

TEST(Select, ByNameOrFamily) {
  EXPECT_EQ(chosen({.algorithm = register_algorithm("fast")}, 0), "fast");
  EXPECT_EQ(chosen({.algorithm = register_algorithm("slow_b")}, 0), "slow_b");
  EXPECT_EQ(chosen({.algorithm = register_algorithm("slow")}, 0), "slow_a");
  EXPECT_EQ(chosen({.algorithm = algorithm_id("reference")}, 0), "reference");
  EXPECT_EQ(chosen({.algorithm = register_algorithm("random")}, 0), "random");
}

TEST(Select, UnknownOrDecliningNamesFallBackAndSayWhatRan) {
  EXPECT_EQ(chosen({.algorithm = register_algorithm("another_op's")}, 0), "slow_a");
  EXPECT_EQ(chosen({.algorithm = register_algorithm("never")}, 0), "slow_a");
}

TEST(Select, NoCandidateIsASentence) {
  EXPECT_TRUE(refused([] { prepare<Nothing>({}, {}, {kOne}); }, "nothing: no kernel on cpu takes this problem"));
  EXPECT_TRUE(refused([] { prepare<Nothing>({}, {kOne}, {kOne}); }, "nothing: no kernel on cpu takes f32 (1) nchw"));
}

// A library's kernels between one's own: the first declines two of three problems, all do the third.
struct Mixed {
  static constexpr char kName[] = "mixed";
  struct Params {
    int64_t vendors = 0;
  };
  static void cpu(const Problem<Params>& p, Candidates& c) {
    const auto vendors = p.params.vendors;
    c.add("own_a", [] { return writes(1); });
    c.add(Provider::kOneDnn, "vendor_a", [=] { return vendors > 1 ? writes(2, 3000) : nullptr; });
    c.add("own_b", [] { return writes(3); });
    c.add(Provider::kOneDnn, "vendor_b", [=] { return vendors > 0 ? writes(4) : nullptr; });
  }
};
std::string of_mixed(Policy policy, int64_t vendors) {
  const PolicyScope scope(policy);
  const detail::Ref<PreparedKernel> p = prepare<Mixed>({vendors}, {}, {kOne});
  const KernelInfo& info = p->kernel->info();
  EXPECT_TRUE(info.is_offered_by_vendor);
  EXPECT_EQ(is_vendor(info.provider), info.algorithm.starts_with("vendor")) << info.algorithm;
  return info.algorithm;
}

TEST(Select, TheVendorsKernelsAloneWhereItHasAny) {
  constexpr auto kVendor = KernelSet::kVendor;
  EXPECT_EQ(of_mixed({}, 2), "own_a");
  EXPECT_EQ(of_mixed({.kernels = kVendor}, 2), "vendor_a");
  EXPECT_EQ(of_mixed({.kernels = kVendor}, 1), "vendor_b");
  EXPECT_EQ(of_mixed({.kernels = kVendor}, 0), "own_a");
}

TEST(Select, TheSetOfKernelsAndTheWayToSearchItAreIndependent) {
  constexpr auto kVendor = KernelSet::kVendor;
  constexpr auto kMeasured = Search::kMeasured;
  EXPECT_EQ(of_mixed({.search = kMeasured, .kernels = kVendor}, 2), "vendor_b") << "the faster of the two";
  EXPECT_EQ(of_mixed({.search = kMeasured, .kernels = kVendor, .algorithm = register_algorithm("vendor_a")}, 2),
            "vendor_a");
  EXPECT_EQ(of_mixed({.kernels = kVendor, .algorithm = register_algorithm("vendor_b")}, 2), "vendor_b");
  EXPECT_EQ(of_mixed({.kernels = kVendor, .algorithm = register_algorithm("own_b")}, 2), "vendor_a");
  EXPECT_EQ(of_mixed({.kernels = kVendor, .algorithm = register_algorithm("own_b")}, 0), "own_b");
  EXPECT_EQ(of_mixed({.search = Search::kDeterministic, .kernels = kVendor}, 2), "vendor_a");
}

// Of which the vendor's first is the fastest.
struct Kept {
  static constexpr char kName[] = "kept";
  using Params = NoParams;
  static inline std::map<std::string, int> made;
  static void cpu(const Problem<Params>&, Candidates& c) {
    const auto add = [&](Provider provider, const char* name, int turns) {
      c.add(provider, name, [=] { return ++made[name], writes(1, turns); });
    };
    add(Provider::kPlumbline, "own_slow", 3000);
    add(Provider::kOneDnn, "vendor_fast", 1);
    add(Provider::kOneDnn, "vendor_slow", 3000);
  }
};
TEST(Select, WhatWasTheFastestOfAllIsSoAmongTheVendors) {
  using Counts = std::map<std::string, int>;
  const auto choose = [](KernelSet kernels) {
    const PolicyScope scope({.search = Search::kMeasured, .kernels = kernels});
    return prepare<Kept>({}, {}, {kOne})->kernel->info().algorithm;
  };
  EXPECT_EQ(choose(KernelSet::kAll), "vendor_fast");
  EXPECT_EQ(Kept::made, (Counts{{"own_slow", 1}, {"vendor_fast", 1}, {"vendor_slow", 1}}));
  EXPECT_EQ(choose(KernelSet::kVendor), "vendor_fast");
  EXPECT_EQ(Kept::made, (Counts{{"own_slow", 1}, {"vendor_fast", 2}, {"vendor_slow", 1}}))
      << "nothing is measured again";
}

// Candidates that ask for more and more memory.
struct Roomy {
  static constexpr char kName[] = "roomy";
  struct Params {
    int64_t key = 0;
  };
  static void cpu(const Problem<Params>&, Candidates& c) {
    for (const auto& [name, bytes] : {std::pair{"large", 4096}, {"middle", 1024}, {"small", 64}}) {
      c.add(name, [bytes = size_t(bytes)] {
        auto kernel = writes(1);
        kernel->info().workspace_bytes = bytes;
        return kernel;
      });
    }
  }
};

class WorkspaceLimit : public testing::Test {
 protected:
  ~WorkspaceLimit() override { set_workspace_limit(std::numeric_limits<size_t>::max()); }
};

TEST_F(WorkspaceLimit, PassesOverWhatAsksForMore) {
  const auto roomy = [](int64_t key) { return prepare<Roomy>({key}, {}, {kOne})->kernel->info().algorithm; };
  EXPECT_EQ(roomy(0), "large");
  set_workspace_limit(1024);
  EXPECT_EQ(workspace_limit(Device()), 1024u);
  EXPECT_EQ(roomy(0), "large") << "what is prepared stays";
  EXPECT_EQ(roomy(1), "middle");
  set_workspace_limit(1023);
  EXPECT_EQ(roomy(2), "small");
  const Policy measured{.search = Search::kMeasured};
  {
    const PolicyScope scope(measured);
    EXPECT_EQ(roomy(3), "small");
  }
  set_workspace_limit(63);
  EXPECT_TRUE(refused([&] { roomy(4); },
                      "roomy: no kernel on cpu takes this problem within a workspace of 63 bytes; allow at least 64"));
  set_workspace_limit(64);
  EXPECT_EQ(roomy(4), "small") << "and goes on";
}

std::map<std::string, std::string> choices_about(const std::string& work) {
  std::map<std::string, std::string> found;
  for (const auto& [description, algorithm] : tuning_in_use()) {
    if (description.starts_with(work)) found[description] = algorithm;
  }
  return found;
}

TEST(Select, MeasuringFindsTheFastestAndRemembersIt) {
  const Policy measured{.search = Search::kMeasured};
  EXPECT_EQ(chosen(measured, 100), "fast");
  const auto known = choices_about("several 0000000000000064");
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known.begin()->second, "fast");
}

// Beside the work under way there may be no room for another copy of its operands.
TEST(Select, WithoutTheMemoryToMeasureTheFirstIsTaken) {
  constexpr int64_t kElements = 4 << 20;
  const PolicyScope measured({.search = Search::kMeasured});
  const Tensor a = test::random_tensor(TensorSpec(Shape{kElements}), 1), b = test::random_tensor(a.spec(), 2);
  cpu_memory().trim();
  cpu_memory().set_limit(static_cast<size_t>(cpu_memory().stats().reserved_bytes) + a.bytes() + (1 << 20));
  Tensor sum;
  EXPECT_NO_THROW(sum = a + b);
  cpu_memory().set_limit(std::numeric_limits<size_t>::max());
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum.data<float>()[7], a.data<float>()[7] + b.data<float>()[7]);
}

// The first of which wants more memory than there is.
struct Greedy {
  static constexpr char kName[] = "greedy";
  using Params = NoParams;
  static void cpu(const Problem<Params>&, Candidates& c) {
    const auto offer = [&](const char* name, float value, int microseconds, size_t bytes) {
      c.add(name, [=] {
        auto kernel = writes(value, microseconds);
        kernel->info().workspace_bytes = bytes;
        return kernel;
      });
    };
    offer("greedy", 1, 0, size_t{1} << 40);
    offer("slow", 2, 3000, 64);
    offer("fast", 3, 0, 1 << 20);
  }
};

TEST(Select, WithoutTheMemoryForOneTheOthersAreMeasured) {
  const PolicyScope measured({.search = Search::kMeasured});
  cpu_memory().set_limit(static_cast<size_t>(cpu_memory().stats().reserved_bytes) + (64 << 20));
  const auto p = prepare<Greedy>({}, {}, {kOne});
  cpu_memory().set_limit(std::numeric_limits<size_t>::max());
  EXPECT_EQ(p->kernel->info().algorithm, "fast");
  EXPECT_TRUE(choices_about("greedy").empty()) << "another time there may be the memory";
}

TEST(Select, MeasuringStaysInTheFamilyThatIsNamed) {
  EXPECT_TRUE(chosen({.search = Search::kMeasured, .algorithm = register_algorithm("slow")}, 101).starts_with("slow"));
}

TEST(Select, AdoptedChoicesAreNotMeasuredAnew) {
  const Policy measured{.search = Search::kMeasured};
  ASSERT_EQ(chosen(measured, 102), "fast");
  auto known = choices_about("several 0000000000000066");
  ASSERT_EQ(known.size(), 1u);
  std::string other = known.begin()->first;  // the same work for another key
  other.replace(other.find("66"), 2, "67");

  adopt_tuning({{other, "slow_b"}});

  EXPECT_EQ(chosen(measured, 103), "slow_b");
}

TEST(Select, AdoptedChoicesThatDoNotExistAreMeasured) {
  const Policy measured{.search = Search::kMeasured};
  ASSERT_EQ(chosen(measured, 104), "fast");
  std::string other = choices_about("several 0000000000000068").begin()->first;
  other.replace(other.find("68"), 2, "69");
  adopt_tuning({{other, "gone"}});
  EXPECT_EQ(chosen(measured, 105), "fast");
}

// By a version that offered other kernels.
TEST(Select, AdoptedChoicesAmongOtherCandidatesAreMeasured) {
  const Policy measured{.search = Search::kMeasured};
  ASSERT_EQ(chosen(measured, 106), "fast");
  std::string other = choices_about("several 000000000000006a").begin()->first;
  other.replace(other.find("6a"), 2, "6b");
  other.erase(other.find(" fast"), 5);
  adopt_tuning({{other, "slow_b"}});
  EXPECT_EQ(chosen(measured, 107), "fast");
}

TEST(Machine, IsDescribed) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_FALSE(cpu_isa().empty());
  EXPECT_EQ(machine_signature(), machine_signature());
  EXPECT_EQ(machine_signature().find(' '), std::string::npos);
  ASSERT_EQ(library_versions().size(), 2u);
  EXPECT_TRUE(library_versions()[0].starts_with("oneDNN "));
  EXPECT_NO_THROW(check_processor());
}

}  // namespace
}  // namespace plumb
