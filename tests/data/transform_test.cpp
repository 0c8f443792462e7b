#include "data/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "data/synthetic.h"
#include "tests/support/tensors.h"

namespace plumb::datasets {
namespace {

/// These images as f32, in the order of the layout.
std::vector<float> written(const Converter& converter, std::span<const int64_t> images, int64_t epoch = 0) {
  const TensorSpec spec = converter.spec(static_cast<int64_t>(images.size()));
  std::vector<float> out(static_cast<size_t>(spec.numel()), std::nanf(""));
  converter.write(images, epoch, out.data());
  return out;
}

TEST(Shuffle, IsAPermutationFixedBySeedAndEpoch) {
  std::vector<int64_t> a(1000), b(1000), other_epoch(1000), other_seed(1000), sorted(1000);
  std::iota(sorted.begin(), sorted.end(), int64_t{0});

  shuffle(a, 5, 2);
  shuffle(b, 5, 1);
  shuffle(b, 5, 2);  // does not depend on what was there
  shuffle(other_epoch, 5, 3);
  shuffle(other_seed, 6, 2);

  EXPECT_EQ(a, b);
  EXPECT_NE(a, sorted);
  EXPECT_NE(a, other_epoch);
  EXPECT_NE(a, other_seed);
  std::sort(a.begin(), a.end());
  EXPECT_EQ(a, sorted);
}

TEST(Shuffle, PutsEveryElementEverywhere) {
  std::vector<std::vector<int>> seen(4, std::vector<int>(4));
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    int64_t order[4];
    shuffle(order, 1, epoch);
    for (size_t i = 0; i < 4; ++i) ++seen[i][static_cast<size_t>(order[i])];
  }
  for (const auto& row : seen) {
    for (const int count : row) EXPECT_NEAR(count, 1000, 150);  // more than five deviations
  }
}

TEST(Crop, TakesEveryWindowAndFlipsHalf) {
  std::set<std::pair<int64_t, int64_t>> windows;
  int flips = 0;
  for (int64_t i = 0; i < 4000; ++i) {
    const functors::Window crop = draw_crop(Augmentation::cifar(), 9, 1, i);
    EXPECT_LE(std::abs(crop.dy), 4);
    EXPECT_LE(std::abs(crop.dx), 4);
    windows.emplace(crop.dy, crop.dx);
    flips += crop.flip;
  }
  EXPECT_EQ(windows.size(), 81u);
  EXPECT_NEAR(flips, 2000, 160);
  const functors::Window none = draw_crop({}, 9, 1, 3);
  EXPECT_TRUE(none.dy == 0 && none.dx == 0 && !none.flip);
}

// Every window and both flips of the 2 x 3 image (1 2 3; 4 5 6), against the padded image written out.
TEST(Converter, AugmentsAsByHand) {
  Dataset set = Dataset::make("own", Split::kTrain, {1, 2, 3}, 1, 1);
  set.pixels = {1, 2, 3, 4, 5, 6};
  const int padded[4][5] = {{0, 0, 0, 0, 0}, {0, 1, 2, 3, 0}, {0, 4, 5, 6, 0}, {0, 0, 0, 0, 0}};
  const Augmentation augmentation{1, true};
  const Normalization bytes{{0}, {1.0 / 255}};
  const int64_t image[] = {0};
  std::set<std::tuple<int64_t, int64_t, bool>> seen;

  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    const functors::Window crop = draw_crop(augmentation, 3, epoch, 0);
    seen.emplace(crop.dy, crop.dx, crop.flip);
    for (const Layout layout : kPublicLayouts) {
      const Converter converter(set, bytes, augmentation, DType::kF32, layout, 3);
      const std::vector<float> out = written(converter, image, epoch);
      for (int64_t y = 0; y < 2; ++y) {
        for (int64_t x = 0; x < 3; ++x) {
          const int64_t column = crop.flip ? 2 - x : x;
          EXPECT_EQ(out[static_cast<size_t>(y * 3 + x)], padded[y + 1 + crop.dy][column + 1 + crop.dx]);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 18u);
}

TEST(Converter, ScalesAndNormalises) {
  const Dataset set = synthetic({.image = {3, 4, 5}, .count = 2});
  const Normalization imagenet = Normalization::imagenet();
  const int64_t image[] = {1};

  const std::vector<float> plain = written({set, {}, {}, DType::kF32, Layout::kNchw, 0}, image);
  const std::vector<float> normal = written({set, imagenet, {}, DType::kF32, Layout::kNchw, 0}, image);

  for (size_t i = 0; i < 60; ++i) {
    const double pixel = set.pixels_of(1)[i] / 255.0;
    EXPECT_EQ(plain[i], static_cast<float>(pixel));
    EXPECT_FLOAT_EQ(normal[i], static_cast<float>((pixel - imagenet.mean[i / 20]) / imagenet.deviation[i / 20]));
  }
}

// Black is put around the picture before it is normalised, so that the border has the value of a black pixel.
TEST(Converter, PadsWithBlack) {
  Dataset set = Dataset::make("own", Split::kTrain, {3, 4, 4}, 1, 40);
  std::vector<int64_t> all(40);
  std::iota(all.begin(), all.end(), int64_t{0});

  const std::vector<float> out =
      written({set, Normalization::imagenet(), Augmentation{2, true}, DType::kF32, Layout::kNchw, 0}, all);

  for (size_t i = 0; i < out.size(); ++i) EXPECT_FLOAT_EQ(out[i], out[i / 16 % 3 * 16]);
  EXPECT_FLOAT_EQ(out[0], static_cast<float>(-0.485 / 0.229));
}

TEST(Converter, LayoutsAndDtypesAgree) {
  const Dataset set = synthetic({.image = {3, 7, 5}, .count = 77});
  std::vector<int64_t> images(77);
  shuffle(images, 1, 1);
  const auto converter = [&](DType t, Layout l) {
    return Converter(set, Normalization::imagenet(), {2, true}, t, l, 4);
  };
  const std::vector<float> plain = written(converter(DType::kF32, Layout::kNchw), images, 6);
  const std::vector<double> expected(plain.begin(), plain.end());
  std::vector<double> rounded;
  for (const float v : plain) rounded.push_back(static_cast<double>(static_cast<float>(Bfloat16(v))));

  for (const Layout layout : kPublicLayouts) {
    const Converter to_f32 = converter(DType::kF32, layout), to_bf16 = converter(DType::kBf16, layout);
    const std::vector<float> f32 = written(to_f32, images, 6);
    std::vector<Bfloat16> bf16(f32.size());
    to_bf16.write(images, 6, bf16.data());
    EXPECT_EQ(test::to_doubles(f32.data(), to_f32.spec(77)), expected) << to_string(layout);
    EXPECT_EQ(test::to_doubles(bf16.data(), to_bf16.spec(77)), rounded) << to_string(layout);
  }
}

TEST(Converter, RefusesWhatMakesNoSense) {
  const Dataset set = synthetic({.image = {3, 4, 5}, .count = 1});
  const auto make = [&](const Normalization& n, const Augmentation& a, DType t = DType::kF32) {
    Converter(set, n, a, t, Layout::kNchw, 0);
  };
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();

  EXPECT_NO_THROW(make({{0, 0, 0}, {}}, {3, false}));
  EXPECT_THROW(make({{0}, {}}, {}), Error);
  EXPECT_THROW(make({{}, {1, 1}}, {}), Error);
  EXPECT_THROW(make({{}, {1, 0, 1}}, {}), Error);
  EXPECT_THROW(make({{}, {1, -1, 1}}, {}), Error);
  EXPECT_THROW(make({{}, {1, 1, infinity}}, {}), Error);
  EXPECT_THROW(make({{0, nan, 0}, {}}, {}), Error);
  EXPECT_THROW(make({}, {4, false}), Error);
  EXPECT_THROW(make({}, {-1, false}), Error);
  EXPECT_THROW(make({}, {}, DType::kU8), Error);
}

}  // namespace
}  // namespace plumb::datasets
