// The order of a tensor's elements in memory; tensors are logically (N, C, H, W).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plumb {

/// The layout is an explicit part of every tensor's spec, never guessed from strides. Shapes are logical (N, C, H, W)
/// in every layout. kNchw is plain row-major and fits any rank; the other two are for rank 4. Values from kFirstPack on
/// are packs: a backend's opaque formats, which the gate makes for a kernel that asks for them; users never see them.
enum class Layout : uint16_t { kNchw = 0, kNhwc = 1, kChwn = 2, kFirstPack = 256 };
inline constexpr Layout kPublicLayouts[] = {Layout::kNchw, Layout::kNhwc, Layout::kChwn};

/// Whether it is one of the three layouts that a user's tensors have.
constexpr bool is_public(Layout l) { return l <= Layout::kChwn; }
/// Whether it is a backend's own format.
constexpr bool is_pack(Layout l) { return l >= Layout::kFirstPack; }
/// "nchw", "nhwc", "chwn", or the name of the pack.
std::string to_string(Layout l);
/// The inverse for the three public layouts; throws on anything else.
Layout layout_from_string(std::string_view name);

namespace detail {
/// A new layout value for a pack of this name; `bytes` is the size of a tensor packed so. The rest is in
/// dispatch/pack.h.
Layout new_pack(std::string_view name, size_t bytes);
/// The `bytes` that were given to new_pack.
size_t pack_bytes(Layout pack);
}  // namespace detail

}  // namespace plumb
