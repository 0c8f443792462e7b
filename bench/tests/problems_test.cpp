#include "bench/problems.h"

#include <gtest/gtest.h>

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
  for (const char* line : {"mb2ic3id5ih5oc4kh3", "what", "1 2 3", "5x6:7x8", "ic3ih5q4", "mb2ih5oc4kh3"}) {
    try {
      parsed(line);
      ADD_FAILURE() << line;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("test, line 1"), std::string::npos) << e.what();
    }
  }
}

TEST(ProblemsTest, TheBuiltInShapesAreSound) {
  const Problems p = parsed(builtin_shapes());

  EXPECT_GE(p.conv2d.size(), 30u);
  EXPECT_EQ(p.linear.size(), 6u);
}

}  // namespace
}  // namespace plumb::bench
