// ThreadSanitizer sees the races of emulated kernels: between the threads of a warp, of a block, and between blocks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "kernels/cuda/emulator/threads.h"
#include "kernels/cuda/language.h"

namespace plumb::emulator {
namespace {

struct Args {
  float* data;
};
struct Shared {
  float of_threads[64];
};

enum class Left { kNothing, kBarrier, kSecondBarrier, kAtomic };  // what is left out

template <Left kLeft>
void shift_kernel(Args a) {
  auto& s = cuda::shared<Shared>();
  float v = static_cast<float>(threadIdx.x);
  for (int round = 0; round < 2; ++round) {
    s.of_threads[threadIdx.x] = v;
    if (kLeft != Left::kBarrier) __syncthreads();
    v = s.of_threads[(threadIdx.x + 1) % blockDim.x];
    if (kLeft != Left::kSecondBarrier) __syncthreads();
  }
  v = __shfl_xor_sync(0xffffffffu, v, 1);
  a.data[1 + blockIdx.x * blockDim.x + threadIdx.x] = v;
  auto* const count = reinterpret_cast<int*>(a.data);
  if (kLeft == Left::kAtomic) {
    if (threadIdx.x == 0) ++*count;
  } else {
    atomicAdd(count, 1);
  }
}

// What blocks do to each other before the threads of each wait for each other, all of them or those of a warp.
template <bool kIsInWarps>
void count_blocks_kernel(Args a) {
  if (threadIdx.x == 0) ++*reinterpret_cast<int*>(a.data);
  kIsInWarps ? void(__shfl_xor_sync(0xffffffffu, 1, 1)) : __syncthreads();
}

template <auto* kKernel>
void run() {
  std::vector<float> data(1 + 4 * 64);
  const Args args{data.data()};
  const auto call = [](const void*, const void* a) { kKernel(*static_cast<const Args*>(a)); };
  run_threads({"kFunction = shift_kernel;", "plumb:test", nullptr, {4}, {64}, &args, sizeof args, call}, &args);
}

TEST(RacesTest, AreSeen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kRaced = 66;  // the exit status of a program of whose races ThreadSanitizer has told
  const auto exits = testing::ExitedWithCode(kRaced);
  EXPECT_EXIT((run<shift_kernel<Left::kNothing>>(), std::exit(0)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT((run<shift_kernel<Left::kBarrier>>(), std::exit(0)), exits, "data race");
  EXPECT_EXIT((run<shift_kernel<Left::kSecondBarrier>>(), std::exit(0)), exits, "data race");
  EXPECT_EXIT((run<shift_kernel<Left::kAtomic>>(), std::exit(0)), exits, "data race");
  EXPECT_EXIT((run<count_blocks_kernel<false>>(), std::exit(0)), exits, "data race");
  EXPECT_EXIT((run<count_blocks_kernel<true>>(), std::exit(0)), exits, "data race");
}

struct FaultArgs {
  Fault* fault;
};
void report_kernel(FaultArgs a) { cuda::report(a.fault, 1, blockIdx.x, threadIdx.x, blockIdx.x + threadIdx.x); }

// All threads find something wrong, and one of them tells it, whole.
TEST(RacesTest, OneFaultIsTold) {
  Fault fault;
  const FaultArgs args{&fault};
  const auto call = [](const void*, const void* a) { report_kernel(*static_cast<const FaultArgs*>(a)); };
  run_threads({"kFunction = report_kernel;", "plumb:test", nullptr, {4}, {64}, &args, sizeof args, call}, &args);
  EXPECT_EQ(fault.sentence, 1u);
  EXPECT_EQ(fault.values[2], fault.values[0] + fault.values[1]);
}

}  // namespace
}  // namespace plumb::emulator
