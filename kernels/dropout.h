// Dropout with a counter-based generator.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct DropoutParams {
  Real p = 0.5;  ///< the probability that an element is dropped, in [0, 1)
};

/// {y} or {y, mask} from {x, state}; state is i64 (2): seed and offset; the offset is written. In any layout, let i be
/// an element's index in the row-major order of the logical shape. The element is kept, times 1 / (1 - p), if word i %
/// 4 of Philox::block(seed, offset + i / 4, kDropoutStream) is at least the integer part of p 2^32. The offset grows by
/// the number of blocks used.
struct DropoutForward {
  static constexpr char kName[] = "dropout_forward";
  using Params = DropoutParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};
/// A stream of its own: the streams that fill parameters may have the same seed.
inline constexpr uint64_t kDropoutStream = uint64_t{0xD} << 60;

namespace detail {
/// How memory has the logical order: as `batch` matrices (columns, rows), each the transpose of its part of that order.
/// Row-major tensors have one row.
struct DropoutOrder {
  int64_t batch = 1, rows = 1, columns;
  explicit DropoutOrder(const TensorSpec& x) : columns(x.numel()) {
    if (columns == 0 || x.layout == Layout::kNchw) return;
    const bool is_nhwc = x.layout == Layout::kNhwc;
    batch = is_nhwc ? x.shape[0] : 1;
    rows = x.shape[is_nhwc ? 1 : 0];
    columns /= batch * rows;
  }
};
}  // namespace detail

/// dx from {dy, mask}: dy / (1 - p) where kept, 0 elsewhere.
struct DropoutBackward {
  static constexpr char kName[] = "dropout_backward";
  using Params = DropoutParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
