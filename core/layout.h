// Where the elements of a logical (N, C, H, W) stand in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plumb {

/// An explicit part of every tensor's spec, never guessed from strides. Shapes are logical (N, C, H, W) in all of them.
/// kNchw is plain row-major and fits any rank; the other two are for rank 4. Values from kFirstPack on are packs:
/// opaque formats of one backend, made by the gate for a kernel that asks for them and never seen by a user.
enum class Layout : uint16_t { kNchw = 0, kNhwc = 1, kChwn = 2, kFirstPack = 256 };
inline constexpr Layout kPublicLayouts[] = {Layout::kNchw, Layout::kNhwc, Layout::kChwn};

/// Whether it is one of the three that tensors of the user have.
constexpr bool is_public(Layout l) { return l <= Layout::kChwn; }
/// Whether it is a format of one backend.
constexpr bool is_pack(Layout l) { return l >= Layout::kFirstPack; }
/// "nchw", "nhwc", "chwn", or the name of the pack.
std::string to_string(Layout l);
/// The inverse for the three public layouts; throws on anything else.
Layout layout_from_string(std::string_view name);

namespace detail {
/// A new layout value, for a pack of this name; `bytes` is the size of a tensor packed so. What else is known of packs
/// is dispatch's (dispatch/pack.h).
Layout new_pack(std::string_view name, size_t bytes);
/// What was given to new_pack.
size_t pack_bytes(Layout pack);
}  // namespace detail

}  // namespace plumb
