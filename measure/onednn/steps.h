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
class Steps final : public RawRun {
 public:
  explicit Steps(const char* implementation);
  void run() override;
  void convert() override;

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

using Make = std::function<std::unique_ptr<RawRun>()>;
/// make(), or null if oneDNN refuses or has only its plain reference loops.
std::unique_ptr<RawRun> declining(const Make& make);
/// The fastest of these. They are tried one after another, so that only two have memory at a time.
std::unique_ptr<RawRun> fastest(const std::vector<Make>& makes);

}  // namespace plumb::measure::raw
