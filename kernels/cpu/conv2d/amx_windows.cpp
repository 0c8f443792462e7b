#include "kernels/cpu/conv2d/amx_windows.h"

#include <algorithm>

#include "kernels/cpu/conv2d/window_places.h"

namespace plumb::cpu {
namespace {

constexpr int64_t kTaps = 2 * kAmxDepth;  // of a row of a tile
struct alignas(64) TileRow {
  Bfloat16 taps[kTaps];
};

// The taps of a window, of which each row of a tile is inside of the image, or outside.
void copy_rows(const AmxPanels& to, int64_t line, const Bfloat16* images, const WindowPlace& place,
               const TapRuns& runs) {
  int64_t depth = 0;
  for (const TapRun& run : runs) {
    const WindowPlace::Piece piece = place.piece(run);
    for (int64_t t = run.taps.begin; t < run.taps.end; t += kTaps, depth += kAmxDepth) {
      TileRow row = {};
      if (piece.inside.begin <= t && t < piece.inside.end) std::copy_n(images + piece.at + t, kTaps, row.taps);
      std::memcpy(to.words(line, depth), &row, sizeof(row));
    }
  }
}

}  // namespace

void AmxWindows::pack(float* to, Range lines, Range depths) const {
  const AmxPanels panels(to, depths.size());
  const Range taps{depths.begin * 2, std::min(depths.end * 2, windows_.taps())};
  const TapRuns runs(windows_, taps);
  const bool has_whole_rows = windows_.channels % kTaps == 0;
  Bfloat16 row[2 * kMostPackedDepth + simd::kLanes];
  WindowPlace place(windows_, lines.begin);
  for (int64_t line = 0; line < lines.size(); ++line, place.next()) {
    if (has_whole_rows) {
      copy_rows(panels, line, images_, place, runs);
      continue;
    }
    gather(row, images_, place, runs);
    std::fill(row + taps.size(), row + ceil_div(taps.size(), kTaps) * kTaps, Bfloat16());
    for (int64_t t = 0; t < taps.size(); t += kTaps) std::memcpy(panels.words(line, t / 2), row + t, sizeof(TileRow));
  }
}

}  // namespace plumb::cpu
