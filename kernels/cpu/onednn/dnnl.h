// The wrapper around oneDNN's 2.x and 3.x APIs. All dnnl:: names stay in kernels/cpu.
#pragma once

#include <dnnl.hpp>

#include <string>

#include "core/per_thread.h"
#include "dispatch/kernel.h"
#include "dispatch/pack.h"

#if DNNL_VERSION_MAJOR >= 3
#define PLUMB_DNNL_V3 1
#else
#define PLUMB_DNNL_V3 0
#endif

namespace plumb::cpu {

using dnnl::memory;
using MemoryDesc = dnnl::memory::desc;

dnnl::engine& dnnl_engine();
dnnl::stream& dnnl_stream();  // one per thread

/// The dtype as oneDNN names it; throws if oneDNN lacks it.
memory::data_type dnnl_dtype(DType t);
bool dnnl_has(DType t);
memory::dims dnnl_dims(const Shape& s);
/// The descriptor of a tensor in a public layout, by strides.
MemoryDesc dnnl_desc(const TensorSpec& s);
/// The same, but oneDNN chooses the format.
MemoryDesc dnnl_any(const TensorSpec& s);
/// The layout value for a weight format that oneDNN chose; its packer is oneDNN's reorder. `plain` is how oneDNN
/// describes the row-major tensor (grouped weights have five dimensions there). If both are equal, the layout is kNchw.
Layout dnnl_pack(const MemoryDesc& chosen, const MemoryDesc& plain);

/// Throws unless the call succeeded.
void check_ran(std::string_view name, dnnl_status_t status);

/// Attributes that put the scratchpad in the kernel's workspace: oneDNN's own scratchpad is wrong when several threads
/// run one primitive, and its memory is not accounted for.
dnnl::primitive_attr dnnl_attr(MathMode math = MathMode::kStrict);

/// Whether oneDNN has only plain loops for this, which take hundreds of times as long as anything else.
bool is_plain_loops(const dnnl::primitive_desc_base& pd);

/// Whether the processor has instructions that multiply in bf16, and oneDNN may use them. Without, its products and
/// convolutions in bf16 take four to eight times as long as in f32, or are plain loops.
bool multiplies_bf16();

/// Describes a primitive through either API; the arguments are the same for both.
template <class Primitive, class... Args>
typename Primitive::primitive_desc primitive_desc(const dnnl::primitive_attr& attr, const Args&... args) {
#if PLUMB_DNNL_V3
  return {dnnl_engine(), args..., attr};
#else
  return {typename Primitive::desc(args...), attr, dnnl_engine()};
#endif
}
/// The same for a backward primitive, which must match the forward primitive of `hint`.
template <class Primitive, class Hint, class... Args>
typename Primitive::primitive_desc backward_desc(const dnnl::primitive_attr& attr, const Hint& hint,
                                                 const Args&... args) {
#if PLUMB_DNNL_V3
  return {dnnl_engine(), args..., hint, attr};
#else
  return {typename Primitive::desc(args...), attr, dnnl_engine(), hint};
#endif
}

/// make(), or null if oneDNN throws because it has no implementation.
template <class Make>
std::unique_ptr<Kernel> declining(Make make) {
  try {
    return make();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

/// Where an argument of a primitive comes from.
struct DnnlArg {
  enum From : int { kIn, kOut, kWorkspace };
  int name;         ///< DNNL_ARG_...
  MemoryDesc desc;  ///< of the memory
  From from;
  size_t at;  ///< index of the input or output, or offset in the workspace
};

/// A sequence of oneDNN primitives with bound memory. Memory objects are mutable, so each thread has its own set.
class DnnlKernel final : public Kernel {
 public:
  explicit DnnlKernel(std::string name);
  ~DnnlKernel() override;
  /// Appends a primitive. Skips arguments with an empty desc.
  void append(dnnl::primitive primitive, std::vector<DnnlArg> args);
  /// Appends a reorder between two formats, counted as a conversion.
  void append_reorder(DnnlArg from, DnnlArg to);
  /// Reserves `bytes` of the workspace and returns their offset.
  size_t reserve(size_t bytes);
  /// Reserves a primitive's scratchpad and returns it as an argument.
  DnnlArg scratchpad(const dnnl::primitive_desc_base& pd);
  void run(const Launch&) const override;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<DnnlArg> args;
  };
  struct Bound;
  Bound& bound() const;
  std::vector<Step> steps_;
  detail::PerThread<Bound> bound_;
};

/// The kernel of one primitive, named by oneDNN after `prefix`; null if its implementation is plain loops.
template <class Primitive>
std::unique_ptr<DnnlKernel> single_primitive(const typename Primitive::primitive_desc& pd, std::vector<DnnlArg> args,
                                             const std::string& prefix = "onednn:") {
  if (is_plain_loops(pd)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(prefix + pd.impl_info_str());
  args.push_back(kernel->scratchpad(pd));
  kernel->append(Primitive(pd), std::move(args));
  return kernel;
}

/// A tensor that a primitive may want in another format.
struct DnnlOperand {
  int name;                ///< DNNL_ARG_...
  MemoryDesc own, wanted;  ///< the tensor's format and the primitive's
  bool is_packed = false;  ///< whether the kernel asks for a pack, rather than convert the tensor in every run
};
/// The kernel of one primitive from these inputs, in the order of the kernel's, to the first output, with conversions
/// through the workspace.
std::unique_ptr<Kernel> converting_kernel(const std::string& prefix, dnnl::primitive primitive,
                                          const dnnl::primitive_desc_base& pd, const std::vector<DnnlOperand>& inputs,
                                          const DnnlOperand& output);
/// The same; null if the implementation is plain loops.
template <class Primitive>
std::unique_ptr<Kernel> converting_kernel(const typename Primitive::primitive_desc& pd,
                                          const std::vector<DnnlOperand>& inputs, const DnnlOperand& output,
                                          const std::string& prefix = "onednn:") {
  return is_plain_loops(pd) ? nullptr : converting_kernel(prefix, Primitive(pd), pd, inputs, output);
}

}  // namespace plumb::cpu
