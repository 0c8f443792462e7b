#include "dispatch/trial.h"

#include "tests/support/compare.h"

namespace plumb {
namespace {

TEST(ScratchTest, GivesBackWhatItHasWhenTheRestDoesNotFit) {
  const TensorSpec small(Shape{1 << 20}), huge(Shape{int64_t{1} << 50});
  const int64_t before = cpu_memory().stats().live_total();

  EXPECT_TRUE(test::refused([&] { detail::Scratch({&small, 1}, {&huge, 1}); }, "out of memory"));

  EXPECT_EQ(cpu_memory().stats().live_total(), before);
}

TEST(ScratchTest, CountsAndGivesBackItsBlocks) {
  const TensorSpec in(Shape{100}), out(Shape{10}, DType::kF64);
  const int64_t before = cpu_memory().stats().live_total();
  {
    detail::Scratch scratch({&in, 1}, {&out, 1});
    scratch.block(24);
    EXPECT_EQ(scratch.bytes(), 400u + 80u + 24u);
  }
  EXPECT_EQ(cpu_memory().stats().live_total(), before);
}

}  // namespace
}  // namespace plumb
