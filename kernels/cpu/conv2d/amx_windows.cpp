#include "kernels/cpu/conv2d/amx_windows.h"

#include <algorithm>

#include "kernels/cpu/conv2d/window_places.h"
#include "kernels/cpu/unset.h"

namespace plumb::cpu {
namespace {

constexpr int64_t kTaps = 2 * kAmxDepth;  // of a row of a tile
using Words = simd::bytes::U32;
constexpr int64_t kLanes = simd::kLanes;  // words of a vector

// Writes a window's rows of tiles for so many taps: the first at `words`, the next ones kAmxRows rows behind, each of
// the vectors words_at(tap). Returns where the next one would lie.
template <class WordsAt>
float* put_rows(float* words, int64_t taps, const WordsAt& words_at) {
  for (int64_t t = 0; t < taps; t += kTaps, words += kAmxRows * kAmxDepth) {
    for (int64_t v = 0; v < kAmxDepth; v += kLanes) plumb::detail::store_bytes(words + v, words_at(t + 2 * v));
  }
  return words;
}
float* copy_rows(float* words, const Bfloat16* from, int64_t taps) {
  return put_rows(words, taps, [&](int64_t t) { return plumb::detail::load_bytes<Words>(from + t); });
}
float* put_empty_rows(float* words, int64_t taps) {
  return put_rows(words, taps, [](int64_t) { return Words{}; });
}

// The taps of a window whose runs are whole rows of tiles, inside of the image or outside.
void pack_rows(float* words, const Bfloat16* images, const WindowPlace& place, const TapRuns& runs) {
  if (place.is_inside()) {
    for (const TapRun& run : runs) {
      words = copy_rows(words, images + place.at() + run.offset + run.taps.begin, run.taps.size());
    }
    return;
  }
  for (const TapRun& run : runs) {
    const WindowPlace::Piece piece = place.piece(run);
    const Range inside{std::clamp(piece.inside.begin, run.taps.begin, run.taps.end),
                       std::clamp(piece.inside.end, run.taps.begin, run.taps.end)};
    words = put_empty_rows(words, inside.begin - run.taps.begin);
    words = copy_rows(words, images + piece.at + inside.begin, inside.size());
    words = put_empty_rows(words, run.taps.end - inside.end);
  }
}

}  // namespace

void AmxWindows::pack(float* to, Range lines, Range depths) const {
  const AmxPanels panels(to, depths.size());
  const Range taps{depths.begin * 2, std::min(depths.end * 2, windows_.taps())};
  const TapRuns runs(windows_, taps);
  WindowPlace place(windows_, lines.begin);
  if (windows_.channels % kTaps == 0) {
    for (int64_t line = 0; line < lines.size(); ++line, place.next()) {
      pack_rows(panels.words(line, 0), images_, place, runs);
    }
    return;
  }
  Unset<Bfloat16, 2 * kMostPackedDepth + simd::kLanes> row;
  const int64_t whole = ceil_div(taps.size(), kTaps) * kTaps;
  for (int64_t line = 0; line < lines.size(); ++line, place.next()) {
    gather(row.data(), images_, place, runs);
    std::fill(row.data() + taps.size(), row.data() + whole, Bfloat16());
    copy_rows(panels.words(line, 0), row.data(), whole);
  }
}

}  // namespace plumb::cpu
