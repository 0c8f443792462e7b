#include "core/error.h"

#include <gtest/gtest.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

TEST(Error, MessageReplacesEachPlaceholderByItsArgument) {
  EXPECT_EQ(message("x {} is {}, not {}", Shape{2, 3}, DType::kBf16, true), "x (2, 3) is bf16, not true");
  EXPECT_EQ(message("nothing"), "nothing");
  EXPECT_EQ(message("{}{}", "a", std::string("{}")), "a{}");  // braces in an argument stay
}

TEST(Error, CheckThrowsItsSentence) {
  EXPECT_NO_THROW(PLUMB_CHECK(1 + 1 == 2, "arithmetic: {}", 2));
  EXPECT_TRUE(test::refused([] { PLUMB_CHECK(1 > 2, "arithmetic: {} is not above {}", 1, 2); },
                            "arithmetic: 1 is not above 2"));
}

TEST(Error, CheckEvaluatesArgumentsOnlyWhenItFails) {
  int evaluated = 0;
  const auto count = [&] { return ++evaluated; };

  PLUMB_CHECK(true, "{}", count());

  EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace plumb
