// How long a capture takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "graph/program.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"

namespace plumb {
namespace {

// Sixteen times the uses take sixteen times as long, and not 256 times.
TEST(CaptureTest, IsLinearInTheUsesOfAParameter) {
  const Tensor w = ones({1}).require_grad();
  const auto work = [&](int uses) {
    capture([&] {
      Tensor h = w;
      for (int i = 0; i < uses; ++i) h = h * w;
      return Tensor(grad(h, {w})[0]);
    });
  };
  const auto processor_time = [&](int uses) {  // of this thread, whatever else the machine does
    const auto now = [] {
      timespec t;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    };
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      const double start = now();
      work(uses);
      least = std::min(least, now() - start);
    }
    return least;
  };
  work(100);
  EXPECT_LT(processor_time(16000), 64 * processor_time(1000));
}

}  // namespace
}  // namespace plumb
