// Raw work as a sequence of primitives and conversions. Only for use inside measure/onednn.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "core/block.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "measure/onednn/raw.h"

namespace plumb::measure::raw {

using dnnl::memory;

/// The desc of a bias with `channels` elements, viewed with `rank` dimensions of which the last is the channels; empty
/// without a bias.
memory::desc bias(bool with_bias, int64_t channels, DType dtype, int rank = 1);
/// Attributes of a primitive that applies this activation to its output.
dnnl::primitive_attr attr_of(Activation activation);

/// An input or the result of a primitive.
struct Operand {
  int name;                  ///< DNNL_ARG_...
  memory::desc own, wanted;  ///< the format that it has, and the format that the primitive takes or makes
};

/// A sequence of conversions and primitives.
class Steps final : public RawExchange {
 public:
  explicit Steps(const char* implementation);
  void run() override;
  void convert() override;
  std::function<void()> give(size_t input, void* plain) override;
  std::function<void()> take(void* plain) override;
  bool share(size_t input, RawExchange& other, size_t input_of_other) override;

  /// Memory filled with random numbers; from Plumbline's allocator, so that both sides have equally good pages.
  memory fresh(const memory::desc& d);
  /// Adds a primitive with its own memory, and with a bias unless `bias` is empty. With `convert`, operands have their
  /// own formats before and after, and every run converts those for which the primitive wants another.
  void add(const dnnl::primitive& p, const std::vector<Operand>& in, const memory::desc& bias, const Operand& out,
           bool convert);

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> args;
    bool is_conversion;
  };
  void add_conversion(const memory& from, const memory& to);
  struct Port {
    memory taken;      // what the primitive reads or writes
    memory::desc own;  // the format outside
  };
  std::vector<Port> inputs_;  // of the last primitive
  Port result_;
  dnnl::stream stream_;
  std::vector<Step> steps_;
  std::vector<detail::Block> blocks_;
};

/// A single primitive, added by Steps::add.
template <class Primitive>
std::unique_ptr<RawRun> steps_of(const typename Primitive::primitive_desc& pd, const std::vector<Operand>& in,
                                 const memory::desc& bias, const Operand& out, bool convert) {
  auto steps = std::make_unique<Steps>(pd.impl_info_str());
  steps->add(Primitive(pd), in, bias, out, convert);
  return steps;
}

/// The formats of a layer's tensors.
struct Descs {
  memory::desc x, w, b, y;
};
/// One direction of a layer, from and to tensors in the formats `own`; backward.operator()<Primitive>() describes
/// either gradient. With `convert` as in Steps::add.
template <class Forward, class BackwardInput, class BackwardWeight, class Backward>
std::unique_ptr<RawRun> layer(Direction direction, const Descs& own, const typename Forward::primitive_desc& forward,
                              const Backward& backward, bool convert) {
  switch (direction) {
    case Direction::kForward:
      return steps_of<Forward>(
          forward, {{DNNL_ARG_SRC, own.x, forward.src_desc()}, {DNNL_ARG_WEIGHTS, own.w, forward.weights_desc()}},
          own.b, {DNNL_ARG_DST, own.y, forward.dst_desc()}, convert);
    case Direction::kBackwardInput: {
      const auto pd = backward.template operator()<BackwardInput>();
      return steps_of<BackwardInput>(
          pd, {{DNNL_ARG_DIFF_DST, own.y, pd.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, own.w, pd.weights_desc()}}, {},
          {DNNL_ARG_DIFF_SRC, own.x, pd.diff_src_desc()}, convert);
    }
    case Direction::kBackwardWeight: {
      const auto pd = backward.template operator()<BackwardWeight>();
      return steps_of<BackwardWeight>(
          pd, {{DNNL_ARG_DIFF_DST, own.y, pd.diff_dst_desc()}, {DNNL_ARG_SRC, own.x, pd.src_desc()}}, {},
          {DNNL_ARG_DIFF_WEIGHTS, own.w, pd.diff_weights_desc()}, convert);
    }
  }
  return nullptr;
}

using Make = std::function<std::unique_ptr<RawRun>()>;
/// make(), or null if oneDNN refuses or has only its plain reference loops.
std::unique_ptr<RawRun> declining(const Make& make);
/// The fastest of these. They are tried one after another, so that only two have memory at a time.
std::unique_ptr<RawRun> fastest(const std::vector<Make>& makes);

}  // namespace plumb::measure::raw
