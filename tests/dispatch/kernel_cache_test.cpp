#include "dispatch/kernel_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "kernels/threads.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

using test::refused;

// Adds params.value to a tensor. Counts its preparations and how many of its kernels are alive.
struct AddValue {
  static constexpr char kName[] = "add_value";
  struct Params {
    int64_t value = 0;
  };
  struct Alive {
    Alive() { ++alive; }
    Alive(const Alive&) { ++alive; }
    ~Alive() { --alive; }
  };
  static inline std::atomic<int> prepared = 0, alive = 0;

  static void cpu(const Problem<Params>& p, Candidates& candidates) {
    ++prepared;
    candidates.add("loop", [n = p.in[0].numel(), value = static_cast<float>(p.params.value)] {
      return make_kernel("test:function", [n, value, counted = Alive()](const Launch& l) {
        for (int64_t i = 0; i < n; ++i)
          static_cast<float*>(l.out[0])[i] = static_cast<const float*>(l.in[0])[i] + value;
      });
    });
  }
};

Tensor add_value(const Tensor& x, int64_t value) { return run<AddValue>({value}, {x}, x.spec()); }

// Restores the capacity that other tests count on.
struct Capacity {
  explicit Capacity(int64_t n) { set_cache_capacity(n); }
  ~Capacity() { set_cache_capacity(8192); }
};

TEST(Cache, PreparesOnceForTheSameKey) {
  const Tensor x = zeros(TensorSpec(Shape{11}));
  const int before = AddValue::prepared;

  for (int i = 0; i < 5; ++i) EXPECT_EQ(add_value(x, 3).at({10}), 3);

  EXPECT_EQ(AddValue::prepared, before + 1);
}

// The same under another name.
struct AddAnother : AddValue {
  static constexpr char kName[] = "add_another";
};

TEST(Cache, EveryPartOfTheKeyMatters) {
  const TensorSpec x(Shape{12}), matrix(Shape{3, 4}), image(Shape{1, 2, 2, 3});
  const auto one = [](const TensorSpec& s) { add_value(zeros(s), 1); };
  const auto chosen = [&](const Policy& c) {
    const detail::Scoped<Policy> scope(detail::ctx.policy, c);  // the number of threads too
    one(x);
  };
  const std::pair<const char*, std::function<void()>> keys[] = {
      {"nothing", [&] { one(x); }},
      {"parameters", [&] { add_value(zeros(x), 2); }},
      {"kind", [&] { run<AddAnother>({1}, {zeros(x)}, x); }},
      {"shape", [&] { one(matrix); }},
      {"dtype", [&] { one(x.with(DType::kI32)); }},
      {"rank", [&] { one(image); }},
      {"layout", [&] { one(image.with(Layout::kNhwc)); }},
      {"output", [&] { run<AddValue>({1}, {zeros(x)}, matrix); }},
      {"inputs",
       [&] {
         run<AddValue>({1}, {zeros(x), zeros(x)}, x);
       }},
      {"threads", [&] { chosen({.threads = static_cast<uint16_t>(threads() + 1)}); }},
      {"search", [&] { chosen({.search = Search::kMeasured}); }},
      {"deterministic", [&] { chosen({.search = Search::kDeterministic}); }},
      {"algorithm", [&] { chosen({.algorithm = algorithm_id("loop")}); }},
      {"math", [&] { chosen({.math = MathMode::kBf16}); }},
  };
  for (const bool is_known : {false, true}) {
    for (const auto& [what, work] : keys) {
      const int before = AddValue::prepared;
      work();
      EXPECT_EQ(AddValue::prepared - before, !is_known) << what;
    }
  }
  const DeviceScope elsewhere({DeviceType::kCuda});
  EXPECT_TRUE(refused([&] { prepare<AddValue>({1}, {x}, {x}); }, "add_value: there is no kernel for cuda:0"));
}

TEST(Cache, PrepareAndRunShareKernels) {
  const TensorSpec spec(Shape{13});
  const detail::Ref<PreparedKernel> p = prepare<AddValue>({5}, {spec}, {spec}),
                                    again = prepare<AddValue>({5}, {spec}, {spec});
  EXPECT_EQ(p.get(), again.get());
  const int before = AddValue::prepared;
  EXPECT_EQ(test::to_doubles(add_value(zeros(spec), 5))[0], 5);
  EXPECT_EQ(AddValue::prepared, before);
  EXPECT_EQ(p->in().size(), 1u);
  EXPECT_TRUE(p->out()[0] == spec);
  EXPECT_EQ(p->kernel->info().algorithm, "loop");
  EXPECT_EQ(p->kernel->info().bytes, 2 * 13 * 4);
}

TEST(Cache, LookupsAreCountedByThread) {
  const Tensor x = zeros(TensorSpec(Shape{14}));
  const uint64_t before = cache_lookups();
  add_value(add_value(x, 1), 2);
  EXPECT_EQ(cache_lookups(), before + 2);
  std::thread([&] { add_value(x, 1); }).join();
  EXPECT_EQ(cache_lookups(), before + 2);
}

TEST(Cache, ThreadsThatPrepareTheSameKernelGetOne) {
  const Tensor x = zeros(TensorSpec(Shape{15}));
  const int before = AddValue::prepared;
  std::atomic<int> ready{0};
  std::vector<PreparedKernel*> found(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < 4) std::this_thread::yield();
      add_value(x, 1);
      found[t] = prepare<AddValue>({1}, {x.spec()}, {x.spec()}).get();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(AddValue::prepared, before + 1);
  for (const PreparedKernel* p : found) EXPECT_EQ(p, found[0]);
}

TEST(Cache, TheLeastRecentlyPreparedGoFirst) {
  const Capacity ten(10);
  const Tensor x = zeros(TensorSpec(Shape{16}));
  for (int i = 0; i < 25; ++i) {
    ASSERT_EQ(test::to_doubles(add_value(x, i))[0], static_cast<double>(i));
    ASSERT_LE(cache_stats().kernels, 10);
  }
  const int before = AddValue::prepared;
  add_value(x, 24);
  EXPECT_EQ(AddValue::prepared, before);
  add_value(x, 0);
  EXPECT_EQ(AddValue::prepared, before + 1);
  EXPECT_TRUE(refused([] { set_cache_capacity(0); }, "must hold at least one kernel, not 0"));
}

TEST(Cache, EvictedKernelsLiveAsLongAsSomebodyHoldsThem) {
  const TensorSpec spec(Shape{17});
  const Tensor x = zeros(spec);
  detail::Ref<PreparedKernel> held = prepare<AddValue>({1000}, {spec}, {spec});
  const int alive = AddValue::alive;
  {
    const Capacity one(1);
    for (int i = 0; i < 20; ++i) add_value(x, i);
    EXPECT_LE(AddValue::alive, alive + 4);  // and do not gather
    void *in = x.value->data, *out = x.value->data;
    held->kernel->run({&in, &out, nullptr});
    EXPECT_EQ(x.data<float>()[0], 1000);
    const int before = AddValue::alive;
    held = {};
    EXPECT_LT(AddValue::alive, before);
  }
}

TEST(Cache, EvictionDoesNotDisturbRunningThreads) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 2000 && !stop; ++i) {
        const Tensor x = full(TensorSpec(Shape{1 + i % 37}), t);
        ASSERT_EQ(test::to_doubles(add_value(x, i % 11))[static_cast<size_t>(i % 37)], static_cast<double>(t + i % 11));
        ASSERT_EQ(test::to_doubles(add(x, x))[0], static_cast<double>(2 * t));
      }
    });
  }
  for (int i = 0; i < 300; ++i) set_cache_capacity(1 + i % 7);
  for (std::thread& t : threads) t.join();
  set_cache_capacity(8192);
}

TEST(Cache, ThreadsThatEndGiveBackWhatTheyHeld) {
  const TensorSpec spec(Shape{18});
  std::thread([&] { add_value(zeros(spec), 77); }).join();
  const int before = AddValue::alive;
  {
    const Capacity one(1);
    add_value(zeros(spec), 78);
  }
  EXPECT_LT(AddValue::alive, before + 1);
}

}  // namespace
}  // namespace plumb
