// Sizes, strides and padding of a window that moves over an image.
#pragma once

#include <cstdint>
#include <limits>

namespace plumb {

/// A height and a width. A single number means both.
struct Size2d {
  int32_t of[2];
  constexpr Size2d(int32_t both) : of{both, both} {}
  constexpr Size2d(int32_t height, int32_t width) : of{height, width} {}
  constexpr int32_t operator[](int i) const { return of[i]; }
  constexpr int32_t& operator[](int i) { return of[i]; }
  bool operator==(const Size2d&) const = default;
};

/// One value for each side of an image: top, bottom, left, right. A single value is for all sides; two values are for
/// (top and bottom, left and right).
template <class T>
struct Sides {
  T of[4];
  constexpr Sides(T all = 0) : of{all, all, all, all} {}
  constexpr Sides(T height, T width) : of{height, height, width, width} {}
  constexpr Sides(T top, T bottom, T left, T right) : of{top, bottom, left, right} {}
  constexpr T operator[](int i) const { return of[i]; }
  constexpr T& operator[](int i) { return of[i]; }
  constexpr const T* begin() const { return of; }
  constexpr const T* end() const { return of + 4; }
  constexpr T* begin() { return of; }
  constexpr T* end() { return of + 4; }
  /// Whether opposite sides are alike.
  constexpr bool is_even() const { return of[0] == of[1] && of[2] == of[3]; }
  bool operator==(const Sides&) const = default;
};
using Padding2d = Sides<int32_t>;

/// The default stride of a pooling: the window's own size.
inline constexpr Size2d kKernelSize{std::numeric_limits<int32_t>::min()};

}  // namespace plumb
