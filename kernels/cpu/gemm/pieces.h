// The workspace of a product, in pieces.
#pragma once

#include <algorithm>

#include "core/memory.h"
#include "dispatch/kernel.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb::cpu {

/// Pieces of a workspace, one behind the other.
class Pieces {
 public:
  /// The offset of a new piece of so many elements of T, in bytes.
  template <class T>
  size_t add(int64_t count) {
    const size_t at = bytes_;
    bytes_ += detail::aligned(static_cast<size_t>(count) * sizeof(T));
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

/// The piece at an offset of a memory, or of the workspace.
template <class T>
T* piece_at(void* memory, size_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + offset);
}
template <class T>
T* piece_at(const Launch& l, size_t offset) {
  return piece_at<T>(l.workspace, offset);
}

/// Whether a result of so many elements of T has left the caches before it is read again.
template <class T>
bool is_large(int64_t numel) {
  return numel * int64_t{sizeof(T)} >= nontemporal_bytes;
}

/// n numbers of a bias in f32: where they are, or copied to a piece.
inline const float* widened([[maybe_unused]] float* to, const float* bias, [[maybe_unused]] int64_t n) { return bias; }
template <class T>
const float* widened(float* to, const T* bias, int64_t n) {
  std::transform(bias, bias + n, to, [](T x) { return static_cast<float>(x); });
  return to;
}

}  // namespace plumb::cpu
