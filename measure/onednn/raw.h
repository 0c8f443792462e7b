// Convolutions and matrix products written against oneDNN alone, as its user would: what ours are held against.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/spec.h"
#include "kernels/conv2d.h"

namespace plumb::measure {

/// A piece of work on memory of its own, filled with random numbers.
class RawRun {
 public:
  virtual ~RawRun() = default;
  /// Does the work once, conversions included, and waits for it.
  virtual void run() = 0;
  /// Does the conversions of one run alone.
  virtual void convert() = 0;
  /// What oneDNN calls its implementation, "onednn:brgconv:avx512_core".
  const std::string& implementation() const { return implementation_; }
  /// Conversions of formats in one run, those of the weights included.
  int conversions() const { return conversions_; }

 protected:
  std::string implementation_;
  int conversions_ = 0;
};

enum class Direction { kForward, kBackwardInput, kBackwardWeight };
inline constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackwardInput, Direction::kBackwardWeight};
/// "forward", "backward_input" or "backward_weight".
const char* to_string(Direction d);

/// One direction of a convolution: x (N, IC, IH, IW), w (OC, IC / groups, KH, KW) row-major, y as conv2d has it.
/// Forward may add a bias and apply the activation of the parameters.
struct RawConv2d {
  Direction direction;
  TensorSpec x, w, y;
  Conv2dParams params;
  bool with_bias = false;
};
/// One product of a fully connected layer: x (N, IN), w (OUT, IN), y (N, OUT), all row-major. Forward may add a bias
/// and apply an activation.
struct RawLinear {
  Direction direction;
  TensorSpec x, w, y;
  bool with_bias = false;
  Activation activation = Activation::kNone;
};
/// Both gradients of a fully connected layer: two products, one after the other.
struct RawLinearBackward {
  TensorSpec x, w, y;
};
/// y = a b over the last two dimensions, either seen transposed, plus a row of biases, then the activation; all
/// row-major, of one rank.
struct RawMatmul {
  TensorSpec a, b, y;
  bool transpose_a = false, transpose_b = false, with_bias = false;
  Activation activation = Activation::kNone;
};

/// The kind of raw work that stands beside one of our algorithms: "winograd" beside "winograd_f4x4", "gemm" beside
/// "gemm_columns", "blocked" beside our own kernels without a like in oneDNN, else the algorithm itself.
std::string raw_class(std::string_view algorithm);

// The same work, on tensors in the same layouts, by the same class of algorithm; weights are plain, and their packing
// is part of a run. Null where oneDNN has no such implementation.
//   direct         the activations as they are, the weights in the format that oneDNN asks for
//   blocked        every format as oneDNN likes it, with conversions around; of a fully connected layer, the faster
//                  one of its two primitives
//   winograd       the same with its Winograd algorithm, which oneDNN 2.x has
//   matmul, gemm   the primitive, and dnnl_sgemm, on plain matrices
//   inner_product  the weights in the format that oneDNN asks for
std::unique_ptr<RawRun> raw_same(const RawConv2d& c, std::string_view algorithm);
std::unique_ptr<RawRun> raw_same(const RawLinear& l, std::string_view algorithm);
std::unique_ptr<RawRun> raw_same(const RawLinearBackward& l, std::string_view algorithm);
std::unique_ptr<RawRun> raw_same(const RawMatmul& m, std::string_view algorithm);

// The work with everything left to oneDNN: formats, algorithm and primitive are the fastest found, tensors stand in
// these formats before and after, and nothing is converted in a run.
std::unique_ptr<RawRun> raw_best(const RawConv2d& c);
std::unique_ptr<RawRun> raw_best(const RawLinear& l);
std::unique_ptr<RawRun> raw_best(const RawLinearBackward& l);
std::unique_ptr<RawRun> raw_best(const RawMatmul& m);

}  // namespace plumb::measure
