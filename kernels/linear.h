// The fully connected layer: y = x w^T + b with w as (OUT, IN). There are the three products of a training step,
// variants that include a neighbour's work (db, ReLU's mask), and both products of backward in one pass.
#pragma once

#include "../dispatch/kernel.h"
#include "activation.h"

namespace plumb {

struct LinearParams {
  Activation activation = Activation::kNone;
  int32_t reserved = 0;
};

/// y (N, OUT) from {x, w} or {x, w, b}: x (N, IN), w (OUT, IN), b (OUT).
struct LinearForward {
  static constexpr char kName[] = "linear_forward";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// dx (N, IN) from {dy, w}.
struct LinearBackwardInput {
  static constexpr char kName[] = "linear_backward_input";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// dw (OUT, IN) from {dy, x}.
struct LinearBackwardWeight {
  static constexpr char kName[] = "linear_backward_weight";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// {dw, db} from {dy, x}; db (OUT) is the sum of the rows of dy. Only on devices whose products can compute db as well;
/// the host uses a reduction.
struct LinearBackwardWeightBias {
  static constexpr char kName[] = "linear_backward_weight_bias";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// {y, mask} from {x, w} or {x, w, b}, with ReLU. The mask (u8, mask_of) has one bit per element of y, 1 where y > 0:
/// the bit of y[n][j] is bit j % 8 of byte j / 8 in row n. Bits past OUT are 0. Only on devices: there the next layer's
/// backward applies the mask, and ReLU's own backward does not run.
struct LinearForwardMask {
  static constexpr char kName[] = "linear_forward_mask";
  using Params = NoParams;
  static void reference(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// From {dy, w, mask}, the gradient (N, IN) with respect to the input of the ReLU that made x: dx where the mask is 1,
/// and 0 elsewhere.
struct LinearBackwardInputMask {
  static constexpr char kName[] = "linear_backward_input_mask";
  using Params = NoParams;
  static void reference(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

/// {dx, dw} from {dy, x, w} in one pass, which reads w while it writes dw.
struct LinearBackward {
  static constexpr char kName[] = "linear_backward";
  using Params = LinearParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

namespace detail {
/// The spec of the mask of y (N, OUT): one bit per element, in rows of whole 128 bits, as cuBLASLt requires.
inline TensorSpec mask_of(const TensorSpec& y) {
  return TensorSpec(Shape{y.shape[0], (y.shape[1] + 127) / 128 * 16}, DType::kU8);
}
/// The most rows for one pass: the factors of two rows by four columns stay in registers.
inline constexpr int64_t kMostJointRows = 2;
/// The smallest w for one pass: a smaller one stays in the caches between the two products (docs/measured.md).
inline constexpr size_t kLeastJointBytes = 16 << 20;
/// Whether one pass is faster. With few rows, each product takes as long as moving a large matrix through memory; one
/// pass reads w while it writes dw.
constexpr bool prefers_joint_backward(const TensorSpec& x, const TensorSpec& w) {
  constexpr int64_t kLeastColumns = 1024;
  return x.dtype == DType::kF32 && x.shape[0] >= 1 && x.shape[0] <= kMostJointRows && w.shape[1] >= kLeastColumns &&
         w.bytes() >= kLeastJointBytes;
}
}  // namespace detail

}  // namespace plumb
