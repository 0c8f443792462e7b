#include "core/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/tensor.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kCaching = false;  // nothing is reused, so that accesses after a release are seen
#else
constexpr bool kCaching = true;
#endif
constexpr MemoryClass kClass = MemoryClass::kActivation;

// An allocator of the test's own, which gives back all it has.
class AllocatorTest : public testing::Test {
 protected:
  ~AllocatorTest() override { memory_.trim(); }
  int64_t live(MemoryClass c = kClass) const { return memory_.stats().live_bytes[static_cast<size_t>(c)]; }
  Allocator memory_;
};

TEST_F(AllocatorTest, BlocksAreAlignedAndWritable) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (const size_t bytes : {0, 1, 255, 256, 257, 1000, 4096, 100000, 2097152, 2097153, 5000000}) {
    auto* block = static_cast<unsigned char*>(memory_.get(bytes, kClass));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u) << bytes;
    std::fill_n(block, bytes, static_cast<unsigned char>(blocks.size()));
    blocks.emplace_back(block, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    for (size_t k = 0; k < bytes; ++k) ASSERT_EQ(block[k], i);
    memory_.put(block, bytes, kClass);
  }
  EXPECT_EQ(memory_.stats().live_total(), 0);
}

// Four classes an octave: at most a quarter is lost, but for the smallest blocks.
TEST_F(AllocatorTest, SizeClassesWasteLittle) {
  size_t last = 0;
  for (size_t bytes = 1; bytes < (size_t{1} << 22); bytes += 1 + bytes / 64) {
    void* block = memory_.get(bytes, kClass);
    const auto held = static_cast<size_t>(live());
    memory_.put(block, bytes, kClass);
    memory_.trim();
    ASSERT_GE(held, bytes);
    ASSERT_LE(held, std::max<size_t>(256, bytes + bytes / 4));
    ASSERT_GE(held, last);
    last = held;
  }
}

TEST_F(AllocatorTest, BlocksAreUsedAgainForTheirSizeClass) {
  if (!kCaching) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  void* block = memory_.get(1000, kClass);
  memory_.put(block, 1000, kClass);
  EXPECT_EQ(memory_.get(1020, MemoryClass::kGradient), block);
  const MemoryStats stats = memory_.stats();
  EXPECT_EQ(stats.allocations, 2);
  EXPECT_EQ(stats.system_allocations, 1);
  memory_.put(block, 1020, MemoryClass::kGradient);
}

TEST_F(AllocatorTest, StatsCountByClass) {
  void* a = memory_.get(1024, MemoryClass::kParameter);
  void* b = memory_.get(2048, MemoryClass::kGradient);
  EXPECT_EQ(live(MemoryClass::kParameter), 1024);
  EXPECT_EQ(live(MemoryClass::kGradient), 2048);
  memory_.put(b, 2048, MemoryClass::kGradient);
  void* c = memory_.get(512, MemoryClass::kActivation);
  const MemoryStats stats = memory_.stats();
  EXPECT_EQ(stats.live_total(), 1536);
  EXPECT_EQ(stats.peak_total(), 3072);
  EXPECT_EQ(stats.at_peak_bytes[static_cast<size_t>(MemoryClass::kGradient)], 2048);
  EXPECT_EQ(stats.at_peak_bytes[static_cast<size_t>(MemoryClass::kActivation)], 0);
  EXPECT_EQ(stats.peak_bytes[static_cast<size_t>(MemoryClass::kActivation)], 512);

  memory_.reset_peaks();
  EXPECT_EQ(memory_.stats().peak_total(), 1536);
  memory_.put(a, 1024, MemoryClass::kParameter);
  memory_.put(c, 512, MemoryClass::kActivation);
  EXPECT_EQ(memory_.stats().live_total(), 0);
}

TEST_F(AllocatorTest, TrimGivesBackWhatIsCached) {
  const std::vector<size_t> sizes = {1, 256, 300, 5000, 70000, 3000000};
  std::vector<void*> blocks;
  for (const size_t s : sizes) blocks.push_back(memory_.get(s, kClass));
  const int64_t reserved = memory_.stats().reserved_bytes;
  EXPECT_EQ(reserved, memory_.stats().live_total());
  for (size_t i = 0; i < sizes.size(); ++i) memory_.put(blocks[i], sizes[i], kClass);
  EXPECT_EQ(memory_.stats().reserved_bytes, kCaching ? reserved : 0);

  memory_.trim();

  EXPECT_EQ(memory_.stats().reserved_bytes, 0);
}

TEST_F(AllocatorTest, OutOfMemoryIsASentence) {
  for (const size_t bytes : {size_t{1} << 56, size_t{1} << 62, ~size_t{0}}) {
    EXPECT_TRUE(
        test::refused([&] { memory_.get(bytes, MemoryClass::kGradient); }, "bytes for gradient (0 bytes are in use)"));
  }
  EXPECT_EQ(memory_.stats().live_total(), 0);
  void* block = memory_.get(64, kClass);  // and it goes on working
  memory_.put(block, 64, kClass);
}

TEST_F(AllocatorTest, NothingIsTakenBeyondTheLimit) {
  memory_.set_limit(0);
  EXPECT_TRUE(test::refused([&] { memory_.get(1, kClass); },
                            "out of memory: 1 bytes for activation (0 bytes are in use; the limit is 0 bytes)"));
  memory_.set_limit(1023);  // one byte too few
  EXPECT_TRUE(test::refused([&] { memory_.get(1024, kClass); }, "the limit is 1023 bytes); use a smaller batch"));
  memory_.set_limit(1024);
  void* block = memory_.get(1024, MemoryClass::kState);
  EXPECT_TRUE(test::refused([&] { memory_.get(1, kClass); }, "(1024 bytes are in use: state 1024; the limit is 1024"));
  memory_.put(block, 1024, MemoryClass::kState);
  block = memory_.get(256, kClass);  // what lies idle makes room
  memory_.put(block, 256, kClass);
}

TEST_F(AllocatorTest, ThreadsTogetherStayWithinTheLimit) {
  constexpr size_t kBlock = 1 << 16;
  memory_.set_limit(kBlock);
  std::atomic<int> turns = 0, had = 0, most = 0;
  const auto ask = [&] {
    for (int round = 1; round <= 2000; ++round) {
      void* block = nullptr;
      ++turns;
      while (turns < 2 * round) {
      }
      if (!test::refused([&] { block = memory_.get(kBlock, kClass); }, "out of memory")) {
        int now = ++had;
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        std::this_thread::yield();
        --had;
        memory_.put(block, kBlock, kClass);
      }
      memory_.trim();
    }
  };
  std::thread other(ask);
  ask();
  other.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(memory_.stats().reserved_bytes, 0);
}

TEST_F(AllocatorTest, BlocksAreCutFromWhatIsPreallocated) {
  constexpr size_t kAll = 1 << 20;
  memory_.preallocate(kAll);
  if (!kCaching) return;
  EXPECT_EQ(memory_.stats().reserved_bytes, static_cast<int64_t>(kAll));
  EXPECT_TRUE(test::refused([&] { memory_.preallocate(1); }, "1048576 bytes are preallocated already"));
  memory_.set_limit(kAll);
  void* const half = memory_.get(kAll / 2, kClass);
  void* const other = memory_.get(kAll / 2, kClass);
  EXPECT_TRUE(test::refused([&] { memory_.get(1, kClass); }, "out of memory"));
  memory_.put(half, kAll / 2, kClass);
  void* const quarter = memory_.get(kAll / 4, kClass);  // what was half is cut anew
  memory_.put(quarter, kAll / 4, kClass);
  memory_.put(other, kAll / 2, kClass);
  void* const whole = memory_.get(kAll, kClass);  // and is joined again
  EXPECT_EQ(whole, std::min(half, other));
  memory_.put(whole, kAll, kClass);
  EXPECT_EQ(memory_.stats().system_allocations, 1);
}

TEST_F(AllocatorTest, BlocksCutFromThePreallocatedAreAlignedWhateverTheirSizes) {
  constexpr size_t kAll = 1 << 20;
  if (!kCaching) return;
  EXPECT_TRUE(test::refused([&] { memory_.preallocate(SIZE_MAX); }, "are more than a machine has"));
  memory_.preallocate(kAll);
  std::vector<std::pair<void*, size_t>> held;
  for (const size_t bytes : {300, 600, 300, 350, 800, 300}) held.emplace_back(memory_.get(bytes, kClass), bytes);
  for (const auto& [block, bytes] : held) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kAlignment, 0u) << bytes;
    memory_.put(block, bytes, kClass);
  }
  memory_.trim();
  void* const whole = memory_.get(kAll, kClass);
  memory_.put(whole, kAll, kClass);
  EXPECT_EQ(memory_.stats().system_allocations, 1);
}

TEST_F(AllocatorTest, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::vector<std::pair<unsigned char*, size_t>> held;
      for (size_t i = 0; i < 2000; ++i) {
        const size_t bytes = 1 + (i * 7919 + static_cast<size_t>(t) * 131) % 5000;
        auto* block = static_cast<unsigned char*>(memory_.get(bytes, kClass));
        block[0] = block[bytes - 1] = static_cast<unsigned char>(t);
        held.emplace_back(block, bytes);
        if (held.size() < 20) continue;
        const auto [oldest, size] = held.front();
        ASSERT_TRUE(oldest[0] == t && oldest[size - 1] == t);
        memory_.put(oldest, size, kClass);
        held.erase(held.begin());
      }
      for (const auto& [block, bytes] : held) memory_.put(block, bytes, kClass);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(memory_.stats().live_total(), 0);
  EXPECT_EQ(memory_.stats().allocations, 8000);
}

TEST(Memory, TensorsTooLargeForTheMachineAreRefused) {
  const Shape shape{int64_t{1} << 50};
  EXPECT_TRUE(test::refused([&] { Tensor::empty(TensorSpec(shape)); }, "out of memory"));
}

// Sizes that keep changing leave blocks behind that fit nothing.
TEST(Memory, WhatLiesIdleIsBounded) {
  constexpr size_t kMegabyte = size_t{1} << 20;
  for (size_t bytes = 64 * kMegabyte; bytes < 2000 * kMegabyte; bytes += bytes / 4) {
    cpu_memory().put(cpu_memory().get(bytes, MemoryClass::kWorkspace), bytes, MemoryClass::kWorkspace);
    const MemoryStats s = cpu_memory().stats();
    EXPECT_LE(s.reserved_bytes - s.live_total(), static_cast<int64_t>(3500 * kMegabyte)) << bytes;
  }
}

}  // namespace
}  // namespace plumb
