// Which lines are fetched ahead: no result depends on it, so that nothing else would notice.
#include "kernels/cpu/gemm/ahead.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "kernels/cpu/conv2d/window_panels.h"
#include "kernels/cpu/gemm/panels.h"

namespace plumb::cpu {
namespace {

alignas(64) constexpr char kMemory[1 << 14] = {};

// The offsets of its lines.
std::vector<int64_t> lines_of(RowsAhead rows) {
  std::vector<int64_t> lines;
  for (; !rows.is_done(); rows = rows.after(1)) lines.push_back(rows.next() - kMemory);
  return lines;
}

TEST(Ahead, ListsTheLinesOfEachRow) {
  EXPECT_EQ(lines_of(RowsAhead(kMemory, 3, 128, 512)), (std::vector<int64_t>{0, 64, 512, 576, 1024, 1088}));
  EXPECT_EQ(lines_of(RowsAhead(kMemory + 8, 2, 65, 200)), (std::vector<int64_t>{8, 72, 208, 272}));
  EXPECT_EQ(lines_of(RowsAhead(kMemory, 2, 10, 100)), (std::vector<int64_t>{0, 100}));
}
TEST(Ahead, RowsWithoutGapsAreOneRun) {
  EXPECT_EQ(lines_of(RowsAhead(kMemory, 5, 24, 24)), (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(lines_of(RowsAhead(kMemory, 2, 128, 128)), (std::vector<int64_t>{0, 64, 128, 192}));
}
TEST(Ahead, GoesOnAfterSomeLines) {
  RowsAhead rows(kMemory, 2, 128, 512);
  for (int i = 0; i < 3; ++i) rows.next();
  EXPECT_EQ(lines_of(rows.after(3)), (std::vector<int64_t>{576}));
  EXPECT_TRUE(rows.after(4).is_done());
  EXPECT_TRUE(rows.after(100).is_done());
}
TEST(Ahead, LeavesOutWhatIsFarApartOrEmpty) {
  EXPECT_TRUE(RowsAhead().is_done());
  EXPECT_TRUE(RowsAhead(kMemory, 0, 64, 64).is_done());
  EXPECT_TRUE(RowsAhead(kMemory, 4, 0, 64).is_done());
  EXPECT_FALSE(RowsAhead(kMemory, 64, 64, 4096).is_done());
  EXPECT_TRUE(RowsAhead(kMemory, 65, 64, 4096).is_done());
}
TEST(Ahead, TakesOneOperandAfterTheOther) {
  Ahead ahead{RowsAhead(kMemory, 1, 64, 64), RowsAhead(kMemory + 1024, 1, 64, 64)};
  EXPECT_EQ(ahead.next().next(), kMemory);
  ahead.next() = ahead.next().after(1);
  EXPECT_EQ(ahead.next().next(), kMemory + 1024);
}

// The elements that lie in the lines.
template <class T>
std::set<const T*> elements_of(RowsAhead rows) {
  std::set<const T*> elements;
  for (; !rows.is_done(); rows = rows.after(1)) {
    const auto* line = reinterpret_cast<const T*>(rows.next());
    for (size_t i = 0; i < 64 / sizeof(T); ++i) elements.insert(line + i);
  }
  return elements;
}

template <class T>
class AheadOf : public testing::Test {};
using Elements = testing::Types<float, Bfloat16>;
TYPED_TEST_SUITE(AheadOf, Elements);

TYPED_TEST(AheadOf, MatrixPanelsReachesWhatTheyPack) {
  using T = TypeParam;
  const auto* at = reinterpret_cast<const T*>(kMemory);
  for (const auto& [depth_step, line_step] : {std::pair<int64_t, int64_t>{45, 1}, {1, 21}}) {
    const MatrixPanels<kBlockRows, T> panels({at, depth_step, line_step, 21}, 45);
    const Range lines{kBlockRows, 45}, depths{2, 5};
    const auto elements = elements_of<T>(panels.ahead(lines, depths));
    for (int64_t j = lines.begin; j < lines.end; ++j) {
      for (int64_t i = depths.begin * kInWord<T>; i < depths.end * kInWord<T>; ++i) {
        EXPECT_TRUE(elements.contains(at + i * depth_step + j * line_step)) << "line " << j << ", depth " << i;
      }
    }
  }
}

TYPED_TEST(AheadOf, WindowColumnsReachesWhatTheyPack) {
  using T = TypeParam;
  // Two images of 5 x 6 pixels of 50 channels, of which 40 belong to this group; 3 x 2 windows with a pixel of padding.
  const Shape x{2, 50, 5, 6}, w{1, 40, 3, 2}, y{2, 1, 5, 7};
  Conv2dParams p;
  p.padding = {1, 1, 1, 1};
  const ImageWindows windows = windows_of(x, w, y, p);
  const auto* images = reinterpret_cast<const T*>(kMemory);
  const WindowColumns<T> panels(windows, images, 70);
  const Range lines{2, 240}, depths{3, 20 / kInWord<T>};
  const auto elements = elements_of<T>(panels.ahead(lines, depths));
  for (int64_t i = depths.begin * kInWord<T>; i < depths.end * kInWord<T>; ++i) {
    for (int64_t tap = lines.begin; tap < lines.end; ++tap) {
      const int64_t row = i / 7 % 5 - 1 + tap / 80, column = i % 7 - 1 + tap / 40 % 2;
      if (row < 0 || row >= 5 || column < 0 || column >= 6) continue;
      const T* element = images + ((i / 35 * 5 + row) * 6 + column) * 50 + tap % 40;
      EXPECT_TRUE(elements.contains(element)) << "window " << i << ", tap " << tap;
    }
  }
}

TYPED_TEST(AheadOf, WindowsFarFromEachOtherHaveNone) {
  Conv2dParams p;
  p.stride = {2, 2};
  const ImageWindows windows = windows_of(Shape{1, 8, 8, 8}, Shape{8, 8, 1, 1}, Shape{1, 8, 4, 4}, p);
  const WindowColumns<TypeParam> panels(windows, reinterpret_cast<const TypeParam*>(kMemory), 16);
  EXPECT_TRUE(panels.ahead({0, 8}, {0, 4}).is_done());
}

}  // namespace
}  // namespace plumb::cpu
