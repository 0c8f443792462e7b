// Packs: formats that a kernel wants one of its inputs in, made by the gate and kept on the value.
#pragma once

#include <any>
#include <functional>

#include "kernel_cache.h"

namespace plumb {

/// Makes the kernel that packs a plain tensor of a spec.
using MakePacker = std::function<std::unique_ptr<Kernel>(const TensorSpec& plain)>;
/// What a pack is: its name, the bytes of a tensor packed so, and who packs it.
struct PackFormat {
  std::string name;
  size_t bytes;
  MakePacker make;
  Provider provider = Provider::kPlumbline;
};
namespace detail {
Layout register_pack(std::any key, bool (*same)(const std::any&, const std::any&), PackFormat format);
}  // namespace detail
/// The layout value for a pack. `key` is a value of the caller's own type that tells everything that the format depends
/// on: equal keys of one type are one format.
template <class Key>
Layout register_pack(const Key& key, PackFormat format) {
  const auto same = [](const std::any& a, const std::any& b) {
    const auto *x = std::any_cast<Key>(&a), *y = std::any_cast<Key>(&b);
    return x && y && *x == *y;
  };
  return detail::register_pack(key, same, std::move(format));
}
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
