// Convolutions and matrix products written against oneDNN alone, as a user of it would: ours are compared with these.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/spec.h"
#include "kernels/conv2d.h"

namespace plumb::measure {

/// A piece of work with its own memory, filled with random numbers.
class RawRun {
 public:
  virtual ~RawRun() = default;
  /// Does the work once, including conversions, and waits for it.
  virtual void run() = 0;
  /// Does only the conversions of one run.
  virtual void convert() = 0;
  /// oneDNN's name for its implementation, "onednn:brgconv:avx512_core".
  const std::string& implementation() const { return implementation_; }
  /// Format conversions in one run, including those of the weights.
  int conversions() const { return conversions_; }

 protected:
  std::string implementation_;
  int conversions_ = 0;
};

/// Work whose tensors can be given and read. Inputs are x and w in forward, dy and w for dx, dy and x for dw.
class RawExchange : public RawRun {
 public:
  /// A conversion of row-major memory into the format of this input, to be done before a run as often as that memory
  /// changes. Where the formats are the same, runs read `plain` itself, and there is nothing to do.
  virtual std::function<void()> give(size_t input, void* plain) = 0;
  /// The same for the result: a conversion into row-major memory, to be done after a run.
  virtual std::function<void()> take(void* plain) = 0;
  /// Whether this input has the format of another one of other work; if so, both are the same memory from now on.
  virtual bool share(size_t input, RawExchange& other, size_t input_of_other) = 0;
};

enum class Direction { kForward, kBackwardInput, kBackwardWeight };
inline constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackwardInput, Direction::kBackwardWeight};
/// "forward", "backward_input" or "backward_weight".
const char* to_string(Direction d);

/// One direction of a convolution: x (N, IC, IH, IW), w (OC, IC / groups, KH, KW) row-major, y as conv2d defines it.
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
/// Both gradients of a fully connected layer: two products, one after another.
struct RawLinearBackward {
  TensorSpec x, w, y;
};
/// y = a b over the last two dimensions, of either after an optional transpose, plus a row of biases, then the
/// activation; all row-major, of one rank.
struct RawMatmul {
  TensorSpec a, b, y;
  bool transpose_a = false, transpose_b = false, with_bias = false;
  Activation activation = Activation::kNone;
};

/// The class of raw work to compare with one of our algorithms: "winograd" for "winograd_f4x4", "gemm" for
/// "gemm_columns", "blocked" for our own kernels that oneDNN has no counterpart of, else the algorithm itself.
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

// The work with every choice left to oneDNN: the fastest formats, algorithm and primitive found. Tensors have these
// formats before and after, so a run converts nothing.
std::unique_ptr<RawExchange> raw_best(const RawConv2d& c);
std::unique_ptr<RawRun> raw_best(const RawLinear& l);
std::unique_ptr<RawRun> raw_best(const RawLinearBackward& l);
std::unique_ptr<RawRun> raw_best(const RawMatmul& m);

}  // namespace plumb::measure
