// What describes a tensor apart from its data.
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "dtype.h"
#include "hash.h"
#include "layout.h"
#include "shape.h"

namespace plumb {

/// Shape, dtype and layout in one cache line. Shape rules map specs to specs; kernels are prepared for specs.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kF32;
  uint8_t reserved8 = 0;
  Layout layout = Layout::kNchw;
  uint32_t reserved32 = 0;

  TensorSpec() = default;
  TensorSpec(const Shape& s, DType t = DType::kF32, Layout l = Layout::kNchw) : shape(s), dtype(t), layout(l) {
    if (l != Layout::kNchw && !is_pack(l) && s.rank() != 4) [[unlikely]]
      refuse_layout();
  }

  /// From extents: zeros({2, 3}).
  TensorSpec(std::initializer_list<int64_t> extents, DType t = DType::kF32, Layout l = Layout::kNchw)
      : TensorSpec(Shape(extents), t, l) {}

  int rank() const { return shape.rank(); }
  int64_t numel() const { return shape.numel(); }
  /// The size of the data, or of the pack.
  size_t bytes() const {
    return is_pack(layout) ? detail::pack_bytes(layout) : static_cast<size_t>(shape.numel()) * size_of(dtype);
  }
  TensorSpec with(const Shape& s) const { return {s, dtype, layout}; }
  TensorSpec with(DType t) const { return {shape, t, layout}; }
  TensorSpec with(Layout l) const { return {shape, dtype, l}; }
  bool operator==(const TensorSpec& o) const { return std::memcmp(this, &o, sizeof *this) == 0; }

 private:
  [[noreturn]] void refuse_layout() const;
};
static_assert(sizeof(TensorSpec) == 64 && is_plain_bytes<TensorSpec>);

/// "f32 (250, 64, 32, 32) nhwc".
std::string to_string(const TensorSpec& s);
/// The sum of their sizes.
size_t bytes_of(std::span<const TensorSpec> specs);

/// Distance in elements between neighbours along each logical dimension of a tensor in a public layout.
struct Strides {
  int64_t of[kMaxRank] = {};
  int64_t operator[](int i) const { return of[i]; }
};
/// The strides of a public layout; throws for a pack.
Strides strides_of(const TensorSpec& s);
/// The logical dimensions in memory order, outermost first (NHWC: 0, 2, 3, 1).
struct DimOrder {
  int8_t of[kMaxRank] = {};
  int operator[](int i) const { return of[i]; }
};
/// The order of a tensor of this rank; nhwc and chwn need rank 4.
DimOrder memory_order(Layout layout, int rank);

}  // namespace plumb
