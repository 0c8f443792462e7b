#include "bench/problems.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb::bench {
namespace {

Problems parsed(std::string_view text, int64_t batch = 0) {
  Problems p;
  p.read(text, "test", batch);
  return p;
}

TEST(ProblemsTest, ReadsAConvolutionWithItsAttributes) {
  const Problems p = parsed("conv2d some:name 4x6x9x9 8x3x3x2 groups=2 stride=2x1 dilation=1x2 padding=1x2x3x4\n");

  ASSERT_EQ(p.conv2d.size(), 1u);
  const ConvProblem& c = p.conv2d[0];
  EXPECT_EQ(c.name, "some:name");
  EXPECT_EQ(c.x, (Shape{4, 6, 9, 9}));
  EXPECT_EQ(c.w, (Shape{8, 3, 3, 2}));
  EXPECT_EQ(c.y, (Shape{4, 8, 5, 14}));
  EXPECT_EQ(c.params.groups, 2);
  EXPECT_EQ(c.params.stride, Size2d(2, 1));
  EXPECT_EQ(c.params.dilation, Size2d(1, 2));
  EXPECT_EQ(c.params.padding, Padding2d(1, 2, 3, 4));
}

TEST(ProblemsTest, WhatALineLeavesOutIsOneOrZeroOrAsTheWindow) {
  const Problems p = parsed("conv2d plain 2x3x8x8 4x3x3x3\npool2d plain 2x3x8x8 kernel=2\n");

  EXPECT_EQ(p.conv2d.at(0).y, (Shape{2, 4, 6, 6}));
  EXPECT_EQ(p.pool2d.at(0).y, (Shape{2, 3, 4, 4}));
}

TEST(ProblemsTest, KnowsEachKindOfLine) {
  const Problems p = parsed(
      "# a comment\n\n"
      "linear layer 8x256 10x256\n"
      "pool2d pool 8x16x4x4 kernel=3 stride=1 padding=1  # and another\n"
      "tensor tensor 2x3x4\n"
      "matmul product 5x6 7x6 transpose_b=1\n");

  EXPECT_EQ(p.linear.at(0).n, 8);
  EXPECT_EQ(p.linear.at(0).in, 256);
  EXPECT_EQ(p.linear.at(0).out, 10);
  EXPECT_EQ(p.pool2d.at(0).y, (Shape{8, 16, 4, 4}));
  EXPECT_EQ(p.tensor.at(0).shape, (Shape{2, 3, 4}));
  EXPECT_EQ(p.matmul.at(0).b, (Shape{7, 6}));
  EXPECT_FALSE(p.matmul[0].transpose_a);
  EXPECT_TRUE(p.matmul[0].transpose_b);
}

TEST(ProblemsTest, ReplacesTheBatch) {
  const Problems p = parsed("conv2d c 250x3x8x8 4x3x3x3\ntensor t 250x8\nmatmul m 5x6 6x7\n", 7);

  EXPECT_EQ(p.conv2d.at(0).y[0], 7);
  EXPECT_EQ(p.tensor.at(0).shape, (Shape{7, 8}));
  EXPECT_EQ(p.matmul.at(0).a, (Shape{5, 6}));
}

TEST(ProblemsTest, RefusesWithTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"what ever 1x2", "\"what\" is no op"},
      {"tensor", "a shape is missing"},
      {"conv2d c 2x3x5x5", "a shape is missing"},
      {"tensor t 5 6", "tensor has 1 shapes, and here are 2"},
      {"tensor t 5 stride=1", "tensor has no stride"},
      {"matmul m 5x6 7x8", "matmul: a (5, 6) has 6 columns and b (7, 8) has 7 rows"},
      {"linear l 5x6 7x8", "linear takes no x (5, 6) and w (7, 8)"},
      {"tensor t 0x5", "0x5 has no elements"},
      {"tensor t -1x3", "\"-1x3\" is neither"},
      {"tensor t 2x", "\"2x\" is neither"},
      {"tensor t 2xa", "\"2xa\" is neither"},
      {"tensor t 2147483648", "\"2147483648\" is neither"},
      {"tensor t 2147483647x2147483647x2147483647", "more elements than fit"},
      {"tensor t 1x2x3x4x5x6x7", "rank 7"},
      {"conv2d c 1x3x8x8 4x3x3x3 stride=1 stride=2", "stride is there twice"},
      {"conv2d c 1x3x8x8 4x3x3x3 padding=1x2", "padding has 2 numbers; give 1 or 4"},
      {"conv2d c 1x3x8x8 4x3x3x3 stride=0", "stride"},
      {"conv2d c 1x8x2x2 4x8x5x5", "conv2d"},
      {"pool2d p 1x8x2x2 kernel=5", "pool2d"},
  };
  for (const auto& [line, part] : cases) {
    const std::string text = test::error_of([&] { parsed(line); });
    EXPECT_TRUE(text.starts_with("test, line 1: ")) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(ProblemsTest, ANameIsOfOneProblemOfAnOp) {
  EXPECT_EQ(parsed("tensor a 4x4\nmatmul a 4x4 4x4\nlinear a 4x8 3x8\npool2d a 1x1x4x4 kernel=2\n").size(), 4u);
  EXPECT_NE(test::error_of([&] {
              parsed("linear a 4x8 3x8\nconv2d a 1x3x8x8 4x3x3x3\n");
            }).find("test, line 2: there is another layer a; give each a name of its own"),
            std::string::npos);
  Problems p = parsed("tensor a 4x4\n");
  EXPECT_THROW(p.read("tensor a 5x5\n", "another file"), Error);
}

TEST(ProblemsTest, RefusesFilesWithoutProblems) {
  const test::Folder folder;
  const std::string file = folder.path() / "problems.txt";
  std::ofstream(file) << "# a comment\n\n";
  Problems p;
  EXPECT_NE(test::error_of([&] { p.read_file(file); }).find(file + " holds no problems"), std::string::npos);
  EXPECT_NE(test::error_of([&] { p.read_file(folder.path()); }).find("is a folder, not a file"), std::string::npos);
  EXPECT_NE(test::error_of([&] { p.read_file("/dev/zero"); }).find("is not a regular file"), std::string::npos);
  EXPECT_NE(test::error_of([&] { p.read_file(file + ".none"); }).find("is missing"), std::string::npos);
  std::ofstream(file) << "tensor t 5x6\n";
  p.read_file(file);
  EXPECT_EQ(p.size(), 1u);
}

TEST(ProblemsTest, TheBuiltInShapesAreSound) {
  const Problems p = parsed(builtin_problems());

  EXPECT_GE(p.conv2d.size(), 30u);
  EXPECT_EQ(p.linear.size(), 7u);
}

TEST(ProblemsTest, TheOtherShapesAreSoundAndOfTheirOwn) {
  Problems other;
  other.read_file(test::source_folder() + "/bench/other_shapes.txt");

  EXPECT_GE(other.conv2d.size(), 18u);
  const std::string_view builtin = builtin_problems();
  for (const ConvProblem& c : other.conv2d) EXPECT_EQ(builtin.find(c.name), std::string_view::npos) << c.name;
}

}  // namespace
}  // namespace plumb::bench
