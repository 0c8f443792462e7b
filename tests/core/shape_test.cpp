#include "core/shape.h"

#include <gtest/gtest.h>

#include "core/spec.h"
#include "tests/support/compare.h"

namespace plumb {

using detail::hash_words;
using detail::new_pack;
namespace {

using test::refused;

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape().numel(), 1);  // a scalar
  EXPECT_EQ(Shape({0}).numel(), 0);
  EXPECT_EQ(Shape({2, 3, 4}).numel(), 24);
  EXPECT_EQ(Shape({2, 3, 4}).rank(), 3);
  EXPECT_EQ(Shape({2, 3, 4})[-1], 4);
  EXPECT_EQ(to_string(Shape{250, 64, 32, 32}), "(250, 64, 32, 32)");
  EXPECT_EQ(to_string(Shape{}), "()");
}

TEST(Shape, ComparesExtentsAndRank) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
  EXPECT_NE(Shape({}), Shape({0}));
}

TEST(Shape, WithReplacesOneExtent) {
  EXPECT_EQ(Shape({2, 3, 4}).with(1, 7), Shape({2, 7, 4}));
  EXPECT_EQ(Shape({2, 3, 4}).with(-1, 7), Shape({2, 3, 7}));
}

TEST(Shape, RefusesNegativeExtents) {
  EXPECT_TRUE(refused([] { Shape{2, -1}; }, "shape (2, -1) has a negative extent"));
}

TEST(Shape, RefusesMoreThanSixDimensions) {
  EXPECT_NO_THROW((Shape{1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(refused([] { Shape{1, 1, 1, 1, 1, 1, 1}; }, "rank 7"));
}

TEST(Shape, RefusesWhatOverflows) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_TRUE(refused([&] { Shape{big, big}; }, "more elements than fit"));
  EXPECT_TRUE(refused([&] { Shape{big, big, big, big}; }, "more elements than fit"));  // overflows to zero
  EXPECT_TRUE(refused([&] { Shape{0, big, big}; }, "more elements than fit"));         // strides would overflow
  EXPECT_NO_THROW((Shape{int64_t{1} << 28, int64_t{1} << 28}));
}

TEST(Spec, IsOneCacheLineThatComparesAsBytes) {
  const TensorSpec a(Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc);
  EXPECT_EQ(sizeof(TensorSpec), 64u);
  EXPECT_TRUE(a == TensorSpec(Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc));
  EXPECT_FALSE(a == a.with(DType::kBf16));
  EXPECT_FALSE(a == a.with(Layout::kChwn));
  EXPECT_FALSE(a == a.with(Shape{2, 3, 5, 4}));
  EXPECT_EQ(to_string(a), "f32 (2, 3, 4, 5) nhwc");
}

TEST(Spec, KnowsItsBytes) {
  EXPECT_EQ(TensorSpec(Shape{3, 5}).bytes(), 60u);
  EXPECT_EQ(TensorSpec(Shape{3, 5}, DType::kBf16).bytes(), 30u);
  EXPECT_EQ(TensorSpec(Shape{3, 0}, DType::kF64).bytes(), 0u);
  const Layout pack = new_pack("test_pack", 12345);
  EXPECT_EQ(TensorSpec(Shape{3, 5}, DType::kF32, pack).bytes(), 12345u);
}

TEST(Spec, RefusesImageLayoutsForOtherRanks) {
  const Shape two{2, 3}, five{2, 3, 4, 5, 6};
  EXPECT_TRUE(refused([&] { TensorSpec(two, DType::kF32, Layout::kNhwc); }, "layout nhwc is for tensors of rank 4"));
  EXPECT_TRUE(refused([&] { TensorSpec(five, DType::kF32, Layout::kChwn); }, "layout chwn"));
}

// The place of the element (1, 2, 3, 4) of a (2, 3, 4, 5) in memory.
int64_t place(Layout l) {
  const Strides s = strides_of(TensorSpec(Shape{2, 3, 4, 5}, DType::kF32, l));
  return s[0] * 1 + s[1] * 2 + s[2] * 3 + s[3] * 4;
}

TEST(Layout, PlacesElements) {
  EXPECT_EQ(place(Layout::kNchw), ((1 * 3 + 2) * 4 + 3) * 5 + 4);
  EXPECT_EQ(place(Layout::kNhwc), ((1 * 4 + 3) * 5 + 4) * 3 + 2);
  EXPECT_EQ(place(Layout::kChwn), ((2 * 4 + 3) * 5 + 4) * 2 + 1);
}

TEST(Layout, NamesGoBothWays) {
  for (const Layout l : kPublicLayouts) EXPECT_EQ(layout_from_string(to_string(l)), l);
  EXPECT_TRUE(refused([] { layout_from_string("nhcw"); }, "layout \"nhcw\" is unknown"));
}

TEST(Layout, EveryPackIsANewOne) {
  const Layout a = new_pack("name", 64), b = new_pack("name", 128);
  EXPECT_TRUE(is_pack(a));
  EXPECT_NE(a, b);
  EXPECT_EQ(detail::pack_bytes(b), 128u);
  EXPECT_EQ(to_string(a), "name");
  EXPECT_TRUE(refused([&] { strides_of(TensorSpec(Shape{1}, DType::kF32, a)); }, "has no strides"));
  EXPECT_TRUE(refused([] { detail::pack_bytes(static_cast<Layout>(65535)); }, "is not a known pack"));
}

TEST(Hash, RealIsComparedByItsBits) {
  EXPECT_TRUE(Real(0.5) == Real(0.5));
  EXPECT_FALSE(Real(0.0) == Real(-0.0));
  EXPECT_EQ(static_cast<double>(Real(0.1)), 0.1);
  struct Padded {
    int64_t a;
    int32_t b;
  };
  static_assert(is_plain_bytes<Real> && !is_plain_bytes<Padded> && !is_plain_bytes<double>);
}

TEST(Hash, EveryWordAndItsPlaceMatter) {
  uint64_t words[8] = {1, 2, 1, 2, 0, 0, 0, 0};
  const uint64_t hash = hash_words(words, 8, 0);
  for (uint64_t& w : words) {
    w ^= 4;
    EXPECT_NE(hash_words(words, 8, 0), hash);
    w ^= 4;
  }
  std::swap(words[0], words[4]);
  std::swap(words[1], words[5]);
  EXPECT_NE(hash_words(words, 8, 0), hash);
  EXPECT_NE(hash_words(words, 7, 0), hash_words(words, 7, 1));
}

}  // namespace
}  // namespace plumb
