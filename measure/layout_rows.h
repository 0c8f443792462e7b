// The rows of `plumb layout`: the same piece of a training step in every layout, timed in turn.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/layout.h"
#include "measure/in_turn.h"
#include "measure/layout_pieces.h"

namespace plumb::measure {

/// The pieces of a training step whose images have this layout.
struct LayoutPieces {
  Layout layout;
  std::vector<Piece> pieces;
};

struct LayoutRow {
  Layout layout;
  Piece piece;
  Sampled run{};                  ///< including the packing of weights
  Sampled conversions{};          ///< the part of `run` for packing and for conversions inside the kernel
  std::optional<double> best{};   ///< oneDNN's seconds with free choice of all formats
  std::optional<double> error{};  ///< of a Winograd kernel, against f64; not finite if its result is not
  int rounds = 0, repeats = 0;
  bool is_disturbed() const { return run.is_disturbed || conversions.is_disturbed; }
};
/// Times all pieces, those of one layer and direction in turn, and oneDNN's own formats with them. Rows are in the
/// order of `steps` and their pieces. `progress` is told how many of how many pieces are done.
std::vector<LayoutRow> rows_of(const std::vector<LayoutPieces>& steps,
                               const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace plumb::measure
