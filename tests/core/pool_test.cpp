#include "core/pool.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <thread>

#include "core/context.h"
#include "core/tensor.h"

namespace plumb {

using detail::Pool;
namespace {

#ifdef PLUMB_SANITIZED
constexpr bool kPlain = false;  // a sanitizer has its own malloc, and the pool none of its lists under AddressSanitizer
#else
constexpr bool kPlain = true;
#endif

int64_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

TEST(Pool, ObjectsAreAlignedAndApart) {
  std::vector<std::pair<unsigned char*, size_t>> objects;
  for (const size_t bytes : {1, 63, 64, 65, 128, 1000, 1024, 1025, 2048, 2049, 100000, 1048576, 1048577, 3000000}) {
    auto* object = static_cast<unsigned char*>(detail::ctx.pool.get(bytes));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(object) % 64, 0u);
    std::fill_n(object, bytes, static_cast<unsigned char>(objects.size()));
    objects.emplace_back(object, bytes);
  }
  for (size_t i = 0; i < objects.size(); ++i) {
    for (size_t k = 0; k < objects[i].second; ++k) ASSERT_EQ(objects[i].first[k], i);
    detail::ctx.pool.put(objects[i].first, objects[i].second);
  }
}

TEST(Pool, GivesBackTheSameObject) {
  if (!kPlain) GTEST_SKIP() << "sanitizers see every object";
  void* object = detail::ctx.pool.get(100);
  detail::ctx.pool.put(object, 100);
  EXPECT_EQ(detail::ctx.pool.get(120), object);
  detail::ctx.pool.put(object, 120);
}

TEST(Pool, VectorsReuseTheirStorage) {
  detail::PoolVector<int64_t> v;
  for (int64_t i = 0; i < 1000; ++i) v.push_back(i);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(v[static_cast<size_t>(i)], i);
}

// A producer allocates and a consumer frees: the objects must come back, through the shared store or to the system.
TEST(Pool, ThreadsThatOnlyFreeDoNotHoard) {
  if (!kPlain) GTEST_SKIP() << "the heap is the sanitizer's";
  constexpr size_t kBatch = 100000, kRounds = 15, kBytes = 64;  // 96 MB in all
  const int64_t before = heap_bytes();
  std::vector<void*> objects(kBatch);
  int64_t most = 0;
  std::atomic<int> turn{0};
  std::thread consumer([&] {
    for (size_t r = 0; r < kRounds; ++r) {
      while (turn.load() % 2 == 0) std::this_thread::yield();
      for (void* o : objects) detail::ctx.pool.put(o, kBytes);
      ++turn;
    }
  });
  for (size_t r = 0; r < kRounds; ++r) {
    while (turn.load() % 2 == 1) std::this_thread::yield();
    for (void*& o : objects) o = detail::ctx.pool.get(kBytes);
    most = std::max(most, heap_bytes() - before);
    ++turn;
  }
  consumer.join();
  EXPECT_LT(most, 40 << 20);  // a batch, two lists of up to 4 MB and a store of up to 16 MB
}

// Also a thread that never ran a kernel, such as a loader's worker.
TEST(Pool, EndingThreadsGiveBackTheirLists) {
  if (!kPlain) GTEST_SKIP() << "the heap is the sanitizer's";
  constexpr size_t kObjects = 50000;
  std::vector<void*> objects(kObjects);
  for (void*& o : objects) o = std::aligned_alloc(64, 896);
  const int64_t before = heap_bytes();

  std::thread([&] {
    for (void* o : objects) detail::ctx.pool.put(o, 896);
  }).join();

  EXPECT_LT(heap_bytes(), before - int64_t{kObjects} * 896 / 2);
}

TEST(Pool, TensorsMayDieOnAnotherThread) {
  std::vector<Tensor> tensors;
  std::thread([&] {
    for (int i = 0; i < 1000; ++i)
      tensors.push_back(Tensor::from<float>({static_cast<float>(i)}, Shape{1}).require_grad());
  }).join();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(tensors[static_cast<size_t>(i)].item(), i);
  const int64_t live = cpu_memory().stats().live_total();
  std::thread([&] { tensors.clear(); }).join();
  EXPECT_EQ(live - cpu_memory().stats().live_total(), 1000 * 256);
}

}  // namespace
}  // namespace plumb
