// The emulator on kernels of its own: what it gives them, and what it sees.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/cuda/emulator/language.h"
#include "kernels/cuda/emulator/threads.h"
#include "tests/support/compare.h"

namespace plumb::emulator {
namespace {

constexpr Order kOrders[] = {Order::kForward, Order::kBackward, Order::kRandom, Order::kGreedy};

struct Args {
  float* data;
  int n;
};
void run(void (*kernel)(Args), const Args& args, Extent3 blocks, Extent3 threads) {
  const auto call = [](const void* k, const void* a) {
    reinterpret_cast<void (*)(Args)>(const_cast<void*>(k))(*static_cast<const Args*>(a));
  };
  run_threads({"kFunction = plumb::a_kernel<float>;", "plumb:test", reinterpret_cast<const void*>(kernel), blocks,
               threads, &args, sizeof args, call},
              &args);
}

struct Shared {
  float of_threads[256];
};

// Every block reverses its part; `kWaits` is what a kernel must not forget.
template <bool kWaits>
void reverse_kernel(Args a) {
  auto& s = cuda::shared<Shared>();
  float* const own = a.data + blockIdx.x * blockDim.x;
  s.of_threads[threadIdx.x] = own[threadIdx.x];
  if (kWaits) __syncthreads();
  own[threadIdx.x] = s.of_threads[blockDim.x - 1 - threadIdx.x];
}

// Each round shifts all values by one; the second barrier keeps a round from writing what others still read.
template <bool kWaitsAgain>
void rotate_kernel(Args a) {
  auto& s = cuda::shared<Shared>();
  float v = a.data[threadIdx.x];
  for (int round = 0; round < a.n; ++round) {
    s.of_threads[threadIdx.x] = v;
    __syncthreads();
    v = s.of_threads[(threadIdx.x + 1) % blockDim.x];
    if (kWaitsAgain) __syncthreads();
  }
  a.data[threadIdx.x] = v;
}

class EmulatorTest : public testing::Test {
 protected:
  ~EmulatorTest() override { set_order(Order::kForward); }
  void SetUp() override { std::iota(data_.begin(), data_.end(), 0.0f); }
  std::vector<float> data_ = std::vector<float>(512);
};

TEST_F(EmulatorTest, BarriersHoldInEveryOrder) {
  for (const Order order : kOrders) {
    set_order(order);
    SetUp();
    run(reverse_kernel<true>, {data_.data(), 0}, {4}, {128});
    for (size_t i = 0; i < data_.size(); ++i) ASSERT_EQ(data_[i], static_cast<float>(i / 128 * 128 + 127 - i % 128));
  }
}

TEST_F(EmulatorTest, SharedMemoryIsNotANumberUntilItIsWritten) {
  run(reverse_kernel<false>, {data_.data(), 0}, {1}, {128});
  EXPECT_TRUE(std::isnan(data_[0]));
}

TEST_F(EmulatorTest, AWriteAfterAReadIsSeenInGreedyOrder) {
  int wrong = 0;
  for (const Order order : kOrders) {
    set_order(order);
    SetUp();
    run(rotate_kernel<true>, {data_.data(), 3}, {1}, {64});
    EXPECT_EQ(data_[0], 3);
    SetUp();
    run(rotate_kernel<false>, {data_.data(), 3}, {1}, {64});
    wrong += data_[0] != 3 || data_[40] != 43;
  }
  EXPECT_GE(wrong, 1);
}

void half_waits_kernel(Args) {
  if (threadIdx.x < 16) __syncthreads();
}
void waits_elsewhere_kernel(Args) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
void writes_beyond_kernel(Args a) { cuda::shared<Shared>().of_threads[256 + a.n + threadIdx.x % 4] = 1; }
void reads_beyond_kernel(Args a) { a.data[0] = cuda::shared<Shared>().of_threads[256 + a.n]; }
void other_masks_kernel(Args a) { a.data[0] = __shfl_sync(threadIdx.x < 16 ? 0xffffffffu : 0xffffu, 1.0f, 0); }

TEST_F(EmulatorTest, WhatThreadsMustNotDoNamesTheKernel) {
  const Args args{data_.data(), 0};
  const auto launch = [&args](void (*kernel)(Args), unsigned threads) {
    return [=] { run(kernel, args, {1}, {threads}); };
  };
  const auto refuses = [&](void (*kernel)(Args), const char* part) {
    return test::refused(launch(kernel, 32), std::string("emulator: a_kernel<float>") + part);
  };
  EXPECT_TRUE(refuses(half_waits_kernel, ": 16 of the 32 threads of a block have ended while 16 wait"));
  EXPECT_TRUE(refuses(waits_elsewhere_kernel, ": threads wait for each other in different places"));
  for (const int n : {0, 1000, 12000 - 256}) {
    const auto writes = [&] { run(writes_beyond_kernel, {data_.data(), n}, {1}, {32}); };
    EXPECT_TRUE(test::refused(writes, "emulator: a_kernel<float> wrote outside of its shared memory")) << n;
    run(reads_beyond_kernel, {data_.data(), n}, {1}, {1});  // nothing of it is left
    EXPECT_TRUE(std::isnan(data_[0])) << n;
  }
  EXPECT_TRUE(refuses(other_masks_kernel, ": the lanes of a warp exchange values under different masks"));
  EXPECT_TRUE(test::refused(launch(reverse_kernel<true>, 2048), "blocks of 2048 threads"));
  run(reverse_kernel<true>, {data_.data(), 0}, {4}, {128});  // and it goes on
}

struct Wide {
  float of_threads[8192];
};
void fills_kernel(Args) {
  for (float& v : cuda::shared<Wide>().of_threads) v = 1;
}

TEST_F(EmulatorTest, ABlockFindsNothingOfAnothersSharedMemory) {
  run(fills_kernel, {data_.data(), 0}, {2}, {1});
  run(reads_beyond_kernel, {data_.data(), 1000}, {1}, {1});
  EXPECT_TRUE(std::isnan(data_[0]));
}

void reads_beside_kernel(Args a) {
  cuda::count_read(a.data, sizeof(float));
  if (threadIdx.x < static_cast<unsigned>(a.n)) __syncthreads();
}

TEST_F(EmulatorTest, ALaunchIsNotBlamedForTheOneBefore) {
  watch_accesses([](const void*, size_t) { return false; });
  EXPECT_TRUE(test::refused([&] { run(reads_beside_kernel, {data_.data(), 1}, {1}, {2}); }, "wait for them"));
  EXPECT_NO_THROW(run(reverse_kernel<true>, {data_.data(), 0}, {1}, {2}));
  EXPECT_TRUE(test::refused([&] { run(reads_beside_kernel, {data_.data(), 0}, {1}, {2}); }, "belong to no buffer"));
  watch_accesses(nullptr);
}

void warp_kernel(Args a) {
  float v = static_cast<float>(threadIdx.x);
  const float from_five = __shfl_sync(0xffffffffu, v, 5), neighbour = __shfl_xor_sync(0xffffffffu, v, 1);
  atomicAdd(reinterpret_cast<int*>(a.data + 256), 1);
  const bool is_right =
      from_five == static_cast<float>(threadIdx.x / 32 * 32 + 5) && neighbour == static_cast<float>(threadIdx.x ^ 1u);
  a.data[threadIdx.x] = is_right ? 1.0f : 0.0f;
}

TEST_F(EmulatorTest, WarpsExchangeValues) {
  for (const Order order : kOrders) {
    set_order(order);
    std::ranges::fill(data_, 0.0f);
    run(warp_kernel, {data_.data(), 0}, {1}, {96});
    for (size_t i = 0; i < 96; ++i) ASSERT_EQ(data_[i], 1) << i;
    EXPECT_EQ(std::bit_cast<int>(data_[256]), 96);
  }
}

}  // namespace
}  // namespace plumb::emulator
