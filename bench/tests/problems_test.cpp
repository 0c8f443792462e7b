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

TEST(ProblemsTest, ReadsAConvolutionAndTakesTheWidthFromTheHeight) {
  const Problems p = parsed("g2mb4ic6ih9oc8oh5kh3sh2ph1n\"some:name\"");

  ASSERT_EQ(p.conv2d.size(), 1u);
  const ConvProblem& c = p.conv2d[0];
  EXPECT_EQ(c.name, "some:name");
  EXPECT_EQ(c.x, (Shape{4, 6, 9, 9}));
  EXPECT_EQ(c.w, (Shape{8, 3, 3, 3}));
  EXPECT_EQ(c.y, (Shape{4, 8, 5, 5}));
  EXPECT_EQ(c.params.groups, 2);
  EXPECT_EQ(c.params.stride[1], 2);
  EXPECT_EQ(c.params.padding[3], 1);
}

TEST(ProblemsTest, FindsWhatALineLeavesOut) {
  const Problems p = parsed("ic3ih8oc4kh3ph1\nic3ih8oc4oh8kh3\nic3ih224oc64oh112kh7sh2ph3\nic8ih7oc8oh7kh3dh1ph2\n");

  EXPECT_EQ(p.conv2d[0].y, (Shape{2, 4, 8, 8}));  // the output from the padding
  EXPECT_EQ(p.conv2d[1].params.padding[0], 1);    // the padding from the output
  EXPECT_EQ(p.conv2d[2].params.padding[1], 2);    // the padding after the image from the output
  EXPECT_EQ(p.conv2d[3].params.dilation[0], 2);   // benchdnn counts a dense kernel as 0
  EXPECT_EQ(p.conv2d[3].params.padding[1], 2);
}

TEST(ProblemsTest, KnowsEachKindOfLine) {
  const Problems p = parsed(
      "# a comment\n"
      "--dir=FWD_B mb8ic16ih4oc10n\"ip\"\n"
      "mb8ic16ih4oh2kh2sh2ph0n\"pool\"\n"
      "mb8ic16ih4n\"bnorm\"\n"
      "2x3x4n\"tensor\"\n"
      "5x6:6x7n\"product\"\n");

  EXPECT_EQ(p.linear.at(0).in, 256);
  EXPECT_EQ(p.pool2d.at(0).y, (Shape{8, 16, 2, 2}));
  EXPECT_EQ(p.tensor.at(0).shape, (Shape{8, 16, 4, 4}));
  EXPECT_EQ(p.tensor.at(1).shape, (Shape{2, 3, 4}));
  EXPECT_EQ(p.matmul.at(0).b, (Shape{6, 7}));
}

TEST(ProblemsTest, ReadsDeepBenchsTuples) {
  const Problems p = parsed(
      "    std::make_tuple(700, 161, 1, 4, 32, 20, 5, 0, 0, 2, 2),\n35 70 48 0 1\nstd::make_tuple(9, 8, 7, true, "
      "false)\n");

  const ConvProblem& c = p.conv2d.at(0);
  EXPECT_EQ(c.x, (Shape{4, 1, 161, 700}));
  EXPECT_EQ(c.w, (Shape{32, 1, 5, 20}));
  EXPECT_EQ(c.y, (Shape{4, 32, 79, 341}));
  // Column-major C (35, 70) = A (35, 48) B^T (70, 48) is row-major C^T (70, 35) = B A^T.
  EXPECT_EQ(p.matmul.at(0).a, (Shape{48, 70}));
  EXPECT_TRUE(p.matmul[0].transpose_a);
  EXPECT_EQ(p.matmul[0].b, (Shape{48, 35}));
  EXPECT_FALSE(p.matmul[0].transpose_b);
  EXPECT_EQ(p.matmul.at(1).b, (Shape{9, 7}));
  EXPECT_TRUE(p.matmul[1].transpose_b);
}

TEST(ProblemsTest, ReplacesTheBatch) {
  const Problems p = parsed("mb250ic3ih8oc4kh3ph1\n250x8n\"t\"\n", 7);

  EXPECT_EQ(p.conv2d.at(0).y[0], 7);
  EXPECT_EQ(p.tensor.at(0).shape, (Shape{7, 8}));
}

TEST(ProblemsTest, RefusesWithTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"mb2ic3id5ih5oc4kh3", "three spatial dimensions"},
      {"what", "\"what\" is no problem"},
      {"1 2 3", "there are 3 numbers"},
      {"5x6:7x8", "matmul: a (5, 6) has 6 columns and b (7, 8) has 7 rows"},
      {"ic3ih5q4", "\"q\" is unknown"},
      {"mb2ih5oc4kh3", "ic is missing"},
      {"-1 2 3 0 0", "-1 is less than 0"},
      {"-1x3", "-1x3 is less than 0"},
      {"mb0ic3ih8oc4oh8kh3ph1", "mb is 0"},
      {"mb1ic0ih8oc4oh8kh3ph1", "ic is 0"},
      {"ic3ih8oc4kh3sh0", "sh is 0"},
      {"0x5", "an extent is 0"},
      {"2x:3x4", "a number is missing"},
      {"0 3 2 0 0", "m is 0"},
      {"700 161 1 4 32 20 5 0 0 0 2", "number 10 is 0"},
      {"mb1mb2ic3", "mb is there twice"},
      {"mb1ic3ih32oc4oh5kh3ph1", "the output is said to be (1, 4, 5, 5), and is (1, 4, 31, 31)"},
      {"mb1ic3ih8oc4oh100kh3ph1", "oh100 is more than ih8 gives"},
      {"ic8ih2oc4kh5ph0", "does not fit into 2"},
      {"5 5 1 1 1 9 9 0 0 1 1", "does not fit into 5"},
      {"ic3ih8oc4kh3n\"abc", "the name does not end"},
      {"n\"abc\"", "nothing before the name"},
      {"2147483647x2147483647x2147483647", "more elements than fit"},
      {"1x2x3x4x5x6x7", "rank 7"},
      {"2147483648", "is too large"},
  };
  for (const auto& [line, part] : cases) {
    const std::string text = test::error_of([&] { parsed(line); });
    EXPECT_TRUE(text.starts_with("test, line 1: ")) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(ProblemsTest, RefusesFilesWithoutProblems) {
  const test::Folder folder;
  const std::string file = folder.path() / "problems.txt";
  std::ofstream(file) << "# a comment\n\n--dir=FWD_B\n";
  Problems p;
  EXPECT_NE(test::error_of([&] { p.read_file(file); }).find(file + " holds no problems"), std::string::npos);
  EXPECT_NE(test::error_of([&] { p.read_file(folder.path()); }).find("is a folder, not a file"), std::string::npos);
  EXPECT_NE(test::error_of([&] { p.read_file("/dev/zero"); }).find("is not a regular file"), std::string::npos);
  EXPECT_NE(test::error_of([&] { p.read_file(file + ".none"); }).find("is missing"), std::string::npos);
  std::ofstream(file) << "5x6\n";
  p.read_file(file);
  EXPECT_EQ(p.size(), 1u);
}

TEST(ProblemsTest, TheBuiltInShapesAreSound) {
  const Problems p = parsed(builtin_shapes());

  EXPECT_GE(p.conv2d.size(), 30u);
  EXPECT_EQ(p.linear.size(), 6u);
}

}  // namespace
}  // namespace plumb::bench
