// What the raw work consists of: primitives and conversions in a row. Inside app/raw_onednn*.cpp only.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <unordered_map>
#include <vector>

#include "app/raw_onednn.h"
#include "core/block.h"

namespace plumb::app::raw {

using dnnl::memory;

dnnl::engine& engine();
memory::data_type dtype(DType t);
/// A tensor in one of the public layouts.
memory::desc plain(const TensorSpec& s);
/// The same with the format left to oneDNN.
memory::desc any(const TensorSpec& s);
/// The bias of an output with these channels, seen with `rank` dimensions of which the channels are the last; nothing
/// without a bias.
memory::desc bias(bool with_bias, int64_t channels, DType dtype, int rank = 1);
/// Attributes of a primitive that applies this to its output.
dnnl::primitive_attr attr_of(Activation activation);

/// Primitives in a row.
class Steps final : public RawRun {
 public:
  explicit Steps(const char* implementation);
  void run() override;
  double conversion_seconds() override;

  /// Memory of random numbers. It comes from the library's allocator, so that raw work has as good pages as ours.
  memory fresh(const memory::desc& d);
  /// An operand in the format `wanted`: made from one in the format `own` in every run, if they differ and `convert`.
  memory operand(const memory::desc& own, const memory::desc& wanted, bool convert = true);
  void add(const dnnl::primitive& p, const std::unordered_map<int, memory>& args);
  /// A product, with a bias of its own unless `bias` is nothing.
  void add_forward(const dnnl::primitive& p, const memory& x, const memory& w, const memory::desc& bias,
                   const memory& y);
  /// A result in the format `own`, made in every run from the `made` one if the formats differ and `convert`.
  void result(const memory& made, const memory::desc& own, bool convert = true);

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> args;
    bool conversion;
  };
  void convert(const memory& from, const memory& to);
  dnnl::stream stream_;
  std::vector<Step> steps_;
  std::vector<detail::Block> blocks_;
};

using Make = std::function<std::unique_ptr<RawRun>()>;
/// What `make` makes, or null where oneDNN refuses, or has only its plain reference loops.
std::unique_ptr<RawRun> declining(const Make& make);
/// The fastest of what these make.
std::unique_ptr<RawRun> fastest(const std::vector<Make>& makes);

}  // namespace plumb::app::raw
