// Packs: formats that a kernel wants one of its inputs in, made by the gate and kept on the value.
#pragma once

#include <functional>

#include "kernel_cache.h"

namespace plumb {

/// Makes the kernel that packs a plain tensor of a spec.
using MakePacker = std::function<std::unique_ptr<Kernel>(const TensorSpec& plain)>;
/// The layout value for a pack, which `provider` makes. `key` must tell everything that the format depends on; the same
/// key is the same format.
Layout register_pack(std::string_view key, std::string_view name, size_t bytes, MakePacker make,
                     Provider provider = Provider::kPlumbline);
namespace detail {
/// The kernel from one plain input to one packed output.
std::unique_ptr<Kernel> make_packer(const TensorSpec& plain, Layout pack);

/// Packing as work of its own, through the gate: seen, counted and captured.
struct Repack {
  static constexpr char kName[] = "repack";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>&, Candidates&);
};

/// `plain` in the format `pack`: the one kept on the value, renewed if the value was written since.
Ref<Value> packed(Value* plain, Layout pack);
}  // namespace detail

}  // namespace plumb
