// A tensor's logical extents.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "error.h"

namespace plumb {

inline constexpr int kMaxRank = 6;

/// Up to six 64-bit extents, stored inline. Always logical: (N, C, H, W) whatever the layout. Unused extents are zero,
/// so that shapes compare and hash as bytes. More than 2^56 elements are refused, so that sizes in bytes fit in 63
/// bits.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const int64_t> extents) {
    if (extents.size() > kMaxRank) [[unlikely]]
      refuse_rank(extents.size());
    for (const int64_t e : extents) dims_[rank_++] = e;
    int64_t n = 1;
    for (const int64_t e : extents) {
      if (e < 0 || __builtin_mul_overflow(n, e ? e : 1, &n) || n > kMaxNumel) [[unlikely]]
        refuse();
    }
  }

  int rank() const { return static_cast<int>(rank_); }
  /// The extent of dimension i; negative i counts from the end. Throws if there is no such dimension.
  int64_t operator[](int i) const {
    const int64_t d = i < 0 ? i + rank_ : i;
    if (d < 0 || d >= rank_) [[unlikely]]
      refuse_dimension(i);
    return dims_[d];
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  std::span<const int64_t> extents() const { return {dims_, static_cast<size_t>(rank_)}; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  /// This shape with dimension i set to `extent`.
  Shape with(int i, int64_t extent) const;
  bool operator==(const Shape&) const = default;

 private:
  static constexpr int64_t kMaxNumel = int64_t{1} << 56;  // 2^56, so that a size in bytes does not overflow
  [[noreturn]] void refuse() const;
  [[noreturn]] static void refuse_rank(size_t rank);
  [[noreturn]] void refuse_dimension(int i) const;
  int64_t dims_[kMaxRank] = {};
  int64_t rank_ = 0;
};

/// "(250, 64, 32, 32)".
std::string to_string(const Shape& s);

}  // namespace plumb
