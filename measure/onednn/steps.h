// What the raw work consists of: primitives and conversions in a row. Inside measure/onednn only.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "core/block.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "measure/onednn/raw.h"

namespace plumb::measure::raw {

using dnnl::memory;

/// The bias of an output with these channels, seen with `rank` dimensions of which the channels are the last; nothing
/// without a bias.
memory::desc bias(bool with_bias, int64_t channels, DType dtype, int rank = 1);
/// Attributes of a primitive that applies this to its output.
dnnl::primitive_attr attr_of(Activation activation);

/// An input or the result of a primitive.
struct Operand {
  int name;                  ///< DNNL_ARG_...
  memory::desc own, wanted;  ///< the format that it stands in, and that which the primitive takes or makes
};

/// Conversions and primitives in a row.
class Steps final : public RawRun {
 public:
  explicit Steps(const char* implementation);
  void run() override;
  void convert() override;

  /// Memory of random numbers. It comes from the library's allocator, so that raw work has as good pages as ours.
  memory fresh(const memory::desc& d);
  /// A primitive on memory of its own, with a bias unless that is nothing. With `convert`, operands stand in their own
  /// formats before and after, and are converted in every run where the primitive wants others.
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

/// A primitive as Steps::add has it, and nothing else.
template <class Primitive>
std::unique_ptr<RawRun> steps_of(const typename Primitive::primitive_desc& pd, const std::vector<Operand>& in,
                                 const memory::desc& bias, const Operand& out, bool convert) {
  auto steps = std::make_unique<Steps>(pd.impl_info_str());
  steps->add(Primitive(pd), in, bias, out, convert);
  return steps;
}

using Make = std::function<std::unique_ptr<RawRun>()>;
/// What `make` makes, or null where oneDNN refuses, or has only its plain reference loops.
std::unique_ptr<RawRun> declining(const Make& make);
/// The fastest of what these make. One after the other: only two have memory at a time.
std::unique_ptr<RawRun> fastest(const std::vector<Make>& makes);

}  // namespace plumb::measure::raw
