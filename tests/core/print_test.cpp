#include <fmt/format.h>

#include "core/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "ops/convert.h"
#include "ops/fill.h"

namespace plumb {
namespace {

template <class T>
std::string printed(const T& v) {
  std::ostringstream out;
  out << v;
  return out.str();
}

TEST(Print, ShowsTheSpecAndTheElementsInLogicalOrder) {
  const Tensor x = Tensor::from({1.0f, 2.5f, -3.0f, 4.0f, 0.0f, 1e-7f}, {2, 3});
  EXPECT_EQ(printed(x), "f32 (2, 3) nchw\n[[    1,   2.5,    -3],\n [    4,     0, 1e-07]]");
  const Tensor images = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 2, 2});
  EXPECT_EQ(printed(images), "i32 (1, 2, 2, 2) nchw\n[[[[1, 2],\n   [3, 4]],\n\n  [[5, 6],\n   [7, 8]]]]");
  EXPECT_EQ(printed(to(images, Layout::kNhwc)).substr(22), printed(images).substr(22));
  EXPECT_EQ(printed(full(Shape{}, 2, DType::kBf16)), "bf16 () nchw\n2");
  EXPECT_EQ(printed(Tensor::from({int64_t{1} << 60}, {1})), "i64 (1) nchw\n[1152921504606846976]");
  EXPECT_EQ(printed(zeros({2, 0})), "f32 (2, 0) nchw\n[]");
  EXPECT_EQ(printed(zeros({int64_t{1} << 40, 0})), "f32 (1099511627776, 0) nchw\n[]");
  EXPECT_EQ(printed(Tensor::from({-std::nanf(""), 1.0f}, {2})), "f32 (2) nchw\n[nan,   1]");
}

TEST(Print, ShowsTheEndsOfLongDimensions) {
  std::vector<int32_t> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  EXPECT_EQ(printed(Tensor::from(numbers, {1000})), "i32 (1000) nchw\n[  0,   1,   2, ..., 997, 998, 999]");
  EXPECT_EQ(
      printed(Tensor::from(numbers, {500, 2})),
      "i32 (500, 2) nchw\n[[  0,   1],\n [  2,   3],\n [  4,   5],\n ...,\n [994, 995],\n [996, 997],\n [998, 999]]");
}

TEST(Print, WhatHasNoElementsSaysWhy) { EXPECT_EQ(printed(Tensor()), "(empty tensor)"); }

TEST(Print, IsWhatFmtPrints) {
  const Tensor x = ones({2});
  EXPECT_EQ(fmt::format("{} {} {}", x, x.spec(), x.shape()), "f32 (2) nchw\n[1, 1] f32 (2) nchw (2)");
  EXPECT_EQ(printed(x.dtype()) + printed(x.layout()), "f32nchw");
}

}  // namespace
}  // namespace plumb
