// The wrapper around oneDNN that serves its 2.x and its 3.x API. Every dnnl:: name stays in kernels/cpu.
#pragma once

#include <dnnl.hpp>

#include <optional>

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
dnnl::stream& dnnl_stream();  // one a thread

/// The dtype in oneDNN's words; throws for what it does not have.
memory::data_type dnnl_dtype(DType t);
bool dnnl_has(DType t);
memory::dims dnnl_dims(const Shape& s);
/// A tensor in one of the public layouts, by strides.
MemoryDesc dnnl_desc(const TensorSpec& s);
/// The same shape and dtype with the format left to oneDNN.
MemoryDesc dnnl_any(const TensorSpec& s);
/// The layout value for a weight format that oneDNN chose for a row-major tensor that it knows as `plain` (grouped
/// weights have five dimensions there); packing is its reorder. If the two are equal, the layout is kNchw.
Layout dnnl_pack(const MemoryDesc& chosen, const MemoryDesc& plain);

/// Throws unless the library did what it was asked for.
void check_ran(std::string_view name, dnnl_status_t status);

/// Attributes with the scratchpad in the kernel's workspace: the library's own is wrong when several threads run one
/// primitive, and is allocated behind our back.
dnnl::primitive_attr dnnl_attr(MathMode math = MathMode::kStrict);

/// Whether what oneDNN has for this are its plain loops, which take hundreds of times as long as anything else.
bool is_plain_loops(const dnnl::primitive_desc_base& pd);

/// How a primitive is described, whichever of the two APIs there is: the arguments are those of both.
template <class Primitive, class... Args>
typename Primitive::primitive_desc primitive_desc(const dnnl::primitive_attr& attr, const Args&... args) {
#if PLUMB_DNNL_V3
  return {dnnl_engine(), args..., attr};
#else
  return {typename Primitive::desc(args...), attr, dnnl_engine()};
#endif
}
/// The same for a backward primitive, which is to fit the forward one of `hint`.
template <class Primitive, class Hint, class... Args>
typename Primitive::primitive_desc backward_desc(const dnnl::primitive_attr& attr, const Hint& hint,
                                                 const Args&... args) {
#if PLUMB_DNNL_V3
  return {dnnl_engine(), args..., hint, attr};
#else
  return {typename Primitive::desc(args...), attr, dnnl_engine(), hint};
#endif
}

/// make(), or null where oneDNN says (by an exception) that it has no implementation.
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

/// A sequence of oneDNN primitives on bound memory. Memory objects are mutable, so each thread has its own set.
class DnnlKernel final : public Kernel {
 public:
  explicit DnnlKernel(std::string name);
  ~DnnlKernel() override;
  /// Appends a primitive. Arguments with an empty desc are left out.
  void append(dnnl::primitive primitive, std::vector<DnnlArg> args);
  /// Appends a reorder between two formats and counts it as a conversion.
  void append_reorder(DnnlArg from, DnnlArg to);
  /// Reserves `bytes` of the workspace and returns their offset.
  size_t reserve(size_t bytes);
  /// Reserves the scratchpad of a primitive, which is one of its arguments.
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

}  // namespace plumb::cpu
