// Layer normalisation over the last dimensions.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// Attributes of layer_norm.
struct LayerNormParams {
  Real epsilon = 1e-5;
  int32_t dims = 1;  ///< how many dimensions, from the last on, are normalised together
  int32_t reserved = 0;
};

/// {y, mean, inv_std} from {x}, {x, w} or {x, w, b}. x is row-major, w and b have the shape of its last `dims`
/// dimensions, and the statistics have x's shape with these of extent 1: inv_std = 1 / sqrt(var + epsilon).
struct LayerNormForward {
  static constexpr char kName[] = "layer_norm_forward";
  using Params = LayerNormParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// {dx} from {dy, x, mean, inv_std}; {dx}, {dw, db} or {dw, db, dx} from the same and w.
struct LayerNormBackward {
  static constexpr char kName[] = "layer_norm_backward";
  using Params = LayerNormParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

namespace detail {

/// x as a matrix, whose rows are normalised.
struct LayerNormRows {
  int64_t rows = 1, columns = 1;
  LayerNormRows(const TensorSpec& x, const LayerNormParams& p) {
    for (int d = 0; d < x.rank(); ++d) (d < x.rank() - p.dims ? rows : columns) *= x.shape[d];
  }
};

/// What a problem of LayerNormBackward asks for.
struct LayerNormGradients {
  bool has_w, needs_dw, needs_dx;
  explicit LayerNormGradients(const Problem<LayerNormParams>& p)
      : has_w(p.in.size() == 5), needs_dw(p.out.size() > 1), needs_dx(p.out.size() != 2) {}
  /// The number of dx among the outputs.
  size_t dx() const { return needs_dw ? 2 : 0; }
};

}  // namespace detail

}  // namespace plumb
