// Packs: a kernel's own format for one of its inputs, made by the gate and kept on the value.
#pragma once

#include <any>
#include <functional>

#include "kernel_cache.h"

namespace plumb {

/// Makes the kernel that packs plain tensors of a given spec.
using MakePacker = std::function<std::unique_ptr<Kernel>(const TensorSpec& plain)>;
/// Describes a pack: its name, the size in bytes of a tensor packed so, and how to make its packer.
struct PackFormat {
  std::string name;
  size_t bytes;
  MakePacker make;
  Provider provider = Provider::kPlumbline;
};
namespace detail {
Layout register_pack(std::any key, bool (*same)(const std::any&, const std::any&), PackFormat format);
}  // namespace detail
/// The layout value for a pack. `key` is a value of the caller's own type that contains everything the format depends
/// on: equal keys of one type mean one format.
template <class Key>
Layout register_pack(const Key& key, PackFormat format) {
  const auto same = [](const std::any& a, const std::any& b) {
    const auto *x = std::any_cast<Key>(&a), *y = std::any_cast<Key>(&b);
    return x && y && *x == *y;
  };
  return detail::register_pack(key, same, std::move(format));
}
namespace detail {
/// What was registered for a pack; it stays where it is.
const PackFormat& format_of(Layout pack);
/// The kernel that packs one plain input into one output.
std::unique_ptr<Kernel> make_packer(const TensorSpec& plain, Layout pack);

/// Packing as an op of its own, through the gate: observed, counted and captured.
struct Repack {
  static constexpr char kName[] = "repack";
  using Params = NoParams;
  static void cpu(const Problem<NoParams>&, Candidates&);
  static void cuda(const Problem<NoParams>&, Candidates&);
};

/// `plain` in the format `pack`. The value keeps the pack; it is renewed if the value was written since.
Ref<Value> packed(Value* plain, Layout pack);
}  // namespace detail

}  // namespace plumb
